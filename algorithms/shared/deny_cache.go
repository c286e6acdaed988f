// The deny cache: denials that this process remembers. Clients who retry cost the
// limiter below nothing, and a spent key stays spent while Redis is away.
//
// Why a denial can be remembered. Takes only add to the units in use, so a cost
// that was denied stays denied until its RetryAfter, and so does any larger
// cost, whoever else takes. Only settlements change that. Concurrent limits are
// never remembered (Row.Remembered): a request of another instance may end at
// any moment.
//
// There is one denial per key. Any answer of Redis for the key replaces it, unless
// the answer confirms it: then what was denied still does not fit, and the denial
// takes on the figures of the answer. A settlement of this process drops it. So its
// figures are wrong only about what other instances did after it. For a second the cache answers from it. After
// that the cache asks again, and the denial remains for the fallback: it holds
// until its RetryAfter if Redis does not answer.
//
// Overtaking. A settlement may run while a denial is on its way. Each shard
// counts the settlements of its keys. The layer reads the count before it asks
// the limiter below, and drops the denial if the count has changed when it
// arrives.
//
// Time. A denial ends RetryAfter after the question, because the limiter below
// decided no sooner. The figures of a remembered denial count from the answer,
// because the limiter below decided no later: waits are never too short.
//
// Example: a check is asked at 0 ms and denied at 10 ms with RetryAfter = 300
// ms. The limiter decided at some instant between, so the cost fits between 300
// and 310 ms. The denial ends at 300 ms. A call at 200 ms is denied from memory
// with a wait of 110 ms.

package shared

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/algorithms/internal/step"
)

const (
	// freshFor is how long the cache answers from a denial while Redis can answer.
	freshFor = time.Second

	denyShards = 64 // a power of two
)

// A denyCache is the layer that answers from remembered denials.
type denyCache struct {
	next   layer
	start  time.Time // instants count from here, by the monotonic clock
	shards [denyShards]denyShard
	hits   atomic.Uint64
}

type denyShard struct {
	limit   int                // of keys
	mu      sync.Mutex         // guards the fields below
	denials map[uint64]*denial // by the hash of the key: the latest
	settled uint64             // settlements so far
}

// A denial is the latest answer to one key. It is immutable.
type denial struct {
	key                    step.Key
	limit                  step.Limit
	answer                 step.Answer
	need, now              int64 // now in µs: the clock of the answer
	asked, answered, until time.Duration
}

// newDenyCache returns a cache without a layer below.
func newDenyCache(maxKeys int) *denyCache {
	d := &denyCache{start: time.Now()}
	for i := range d.shards {
		d.shards[i].limit = (maxKeys + denyShards - 1) / denyShards
		d.shards[i].denials = make(map[uint64]*denial)
	}
	return d
}

// now returns the instant by which denials end.
func (d *denyCache) now() time.Duration { return time.Since(d.start) }

func (d *denyCache) allow(ctx context.Context, c *call) error {
	if c.items[0].Op.Settles() {
		err := d.next.allow(ctx, c)
		d.forget(c)
		return err
	}
	asked := d.now()
	var buf [8]uint64
	settled, denied := d.recall(asked, buf[:0], c, func(_ *item, known *denial) bool {
		return asked < known.asked+freshFor && rememberable(c)
	})
	if denied {
		d.hits.Add(1)
		return nil
	}
	if err := d.next.allow(ctx, c); err != nil || c.known {
		return err
	}
	d.learn(c, settled, asked)
	return nil
}

// rememberable reports whether memory may answer a call while Redis can. It may
// not answer trials, which must be counted, and exact items, which must be asked.
func rememberable(c *call) bool {
	for i := range c.items {
		if it := &c.items[i]; it.Op != step.Take || it.exact {
			return false
		}
	}
	return true
}

// recall answers the call if one of its takes was denied and holds says that the
// denial still counts. The other items are allowed and Undecided. It appends the
// number of settlements so far for the key of each item.
func (d *denyCache) recall(now time.Duration, settled []uint64, c *call, holds func(*item, *denial) bool) (counts []uint64, denied bool) {
	for i := range c.items {
		it := &c.items[i]
		sh := &d.shards[it.hash%denyShards]
		sh.mu.Lock()
		known := sh.denials[it.hash]
		settled = append(settled, sh.settled)
		sh.mu.Unlock()
		if known == nil || it.Op != step.Take || now >= known.until || !known.denies(it) || !holds(it, known) {
			continue
		}
		if !denied {
			for j := range c.items {
				c.items[j].decision = algorithms.Decision{Allowed: true}
			}
			denied, c.known = true, true
		}
		it.decision = known.decide(it, now)
	}
	return settled, denied
}

// denies reports whether a denial is about an item's key, limit, and need or less.
// Limits that list their units do not know the wait of another need. Another key
// may have the same hash.
func (d *denial) denies(it *item) bool {
	alike := d.need == it.Need || d.need < it.Need && it.Limit.Row.Counted
	return alike && d.key == it.Key && d.limit == it.Limit
}

// decide returns the decision of an item that a denial denies.
func (d *denial) decide(it *item, now time.Duration) algorithms.Decision {
	f := it.Later(d.answer, d.now+(now-d.answered).Microseconds())
	return algorithms.Decision{
		Source: algorithms.Shared, Remaining: f.Remaining,
		RetryAfter: f.RetryAfter, ResetAfter: f.ResetAfter, UnitAfter: f.UnitAfter,
	}
}

// learn adopts the answers of Redis to a call that was asked at an instant.
func (d *denyCache) learn(c *call, settled []uint64, asked time.Duration) {
	answered := d.now()
	for i := range c.items {
		it := &c.items[i]
		if it.Op != step.Take || it.decision.Source != algorithms.Shared {
			continue
		}
		var n *denial
		if !it.decision.Allowed && len(it.Key.Text) <= maxKept && it.Limit.Row.Remembered {
			n = &denial{
				key: it.Key.Clone(), limit: it.Limit, need: it.Need, answer: it.Answer, now: it.now,
				asked: asked, answered: answered, until: asked + freshFor,
			}
			if wait := it.decision.RetryAfter; wait != algorithms.Never {
				n.until = asked + wait
			}
		}
		d.shards[it.hash%denyShards].put(it, settled[i], asked, answered, n)
	}
}

// forget drops the denials of keys that Redis has settled.
func (d *denyCache) forget(c *call) {
	for i := range c.items {
		it := &c.items[i]
		if it.decision.Source == algorithms.Shared {
			sh := &d.shards[it.hash%denyShards]
			sh.mu.Lock()
			delete(sh.denials, it.hash)
			sh.settled++
			sh.mu.Unlock()
		}
	}
}

// put replaces the denial of a key by the answer to an item. It stores n unless n is
// nil, or a settlement came after the question. If there is no room, other denials
// are dropped.
func (sh *denyShard) put(it *item, settled uint64, asked, answered time.Duration, n *denial) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if old := sh.denials[it.hash]; old != nil {
		if old.now > it.now {
			return // a newer answer came first
		}
		if kept := old.confirmed(it, asked, answered); kept != nil && (n == nil || it.Limit.Row.Counted && kept.need < n.need && kept.until >= n.until) {
			n = kept
		}
	}
	if n == nil || sh.settled != settled {
		delete(sh.denials, it.hash)
		return
	}
	dropSome(sh.denials, func(old *denial) bool { return old.until <= answered || len(sh.denials) >= sh.limit })
	sh.denials[it.hash] = n
}

// confirmed returns a denial as a later answer leaves it: nil if what was denied fits
// now. Answers about units in a list do not say when another need fits. So such a denial
// keeps its own figures, and only the fallback uses it.
func (d *denial) confirmed(it *item, asked, answered time.Duration) *denial {
	if fits := it.decision.ResetAfter == 0 || d.need <= it.decision.Remaining; fits || d.key != it.Key || d.limit != it.Limit {
		return nil
	}
	n, need := *d, it.Item
	if n.asked = asked - freshFor; it.Limit.Row.Counted {
		n.answer, n.now, n.asked, n.answered = it.Answer, it.now, asked, answered
		n.answer.Allowed, need.Need = false, d.need
		n.until = asked + freshFor
		if wait := need.Later(n.answer, it.now).RetryAfter; wait != algorithms.Never {
			n.until = asked + wait
		}
	}
	return &n
}

func (d *denyCache) addStats(s *algorithms.Stats) {
	s.DenyCache.Hits = d.hits.Load()
	for i := range d.shards {
		sh := &d.shards[i]
		sh.mu.Lock()
		s.DenyCache.Keys += len(sh.denials)
		sh.mu.Unlock()
	}
}
