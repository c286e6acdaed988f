// The deny cache: denials that this process remembers, so that clients who
// retry cost the limiter below nothing.
//
// Why a denial can be remembered. Takes only add to the units in use, so a cost
// that was denied stays denied until its RetryAfter, whoever else takes. Only
// settlements change that. A settlement of this process drops the denial before
// and after it runs. A settlement of another instance acts here when the denial
// expires, after a second at most. Concurrent limits are never remembered
// (Row.Remembered): a request of another instance may end at any moment.
//
// Overtaking. A settlement may run while a denial is on its way. Each shard
// counts the settlements of its keys. The layer reads the count before it asks
// the limiter below, and drops the denial if the count has changed when it
// arrives.
//
// Time. A denial expires RetryAfter after the question, because the limiter
// below decided no sooner. The waits that a remembered denial reports count
// from the answer, because the limiter below decided no later: they are never
// too short.
//
// Example: a check is asked at 0 ms and denied at 10 ms with RetryAfter = 300
// ms. The limiter decided at some instant between, so the cost fits between 300
// and 310 ms. The denial expires at 300 ms. A call at 200 ms is denied from
// memory with a wait of 110 ms.

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
	// rememberFor is the longest that a denial is remembered.
	rememberFor = time.Second

	// costsPerKey bounds the denials of one key: each is of another cost or limit.
	costsPerKey = 4

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

// A denial is the answer to one cost of one limit. It is immutable. A larger cost
// has a longer wait, which only the store knows, so each cost has its own denial.
type denial struct {
	earlier  *denial // of the same key and another cost or limit
	key      step.Key
	limit    step.Limit
	need     int64
	until    time.Duration
	answered time.Duration
	decision algorithms.Decision
}

func newDenyCache(next layer, maxKeys int) *denyCache {
	d := &denyCache{next: next, start: time.Now()}
	for i := range d.shards {
		d.shards[i].limit = (maxKeys + denyShards - 1) / denyShards
		d.shards[i].denials = make(map[uint64]*denial)
	}
	return d
}

func (d *denyCache) allow(ctx context.Context, c *call) error {
	if c.settles() { // it may end denials of calls before it and beside it
		d.forget(c.items)
		defer d.forget(c.items)
		return d.next.allow(ctx, c)
	}
	if !rememberable(c) {
		return d.next.allow(ctx, c)
	}
	now := time.Since(d.start)
	var buf [8]uint64
	settled, denied := d.recall(buf[:0], c, now)
	if denied {
		d.hits.Add(1)
		return nil
	}
	if err := d.next.allow(ctx, c); err != nil || c.proceeds() {
		return err
	}
	d.remember(c, settled, now, time.Since(d.start))
	return nil
}

// rememberable reports whether memory may answer a call. It may not answer
// trials, which must be counted, and exact items, which must be asked.
func rememberable(c *call) bool {
	for i := range c.items {
		if it := &c.items[i]; it.Op != step.Take || it.exact {
			return false
		}
	}
	return true
}

// forget drops the denials of items, except if an item can only add to the
// units in use.
func (d *denyCache) forget(items []item) {
	for i := range items {
		it := &items[i]
		if it.Op == step.Force || it.Op == step.Renew {
			continue
		}
		sh := d.shard(it.hash)
		sh.mu.Lock()
		delete(sh.denials, it.hash)
		sh.settled++
		sh.mu.Unlock()
	}
}

func (d *denyCache) shard(hash uint64) *denyShard { return &d.shards[hash%denyShards] }

// recall answers the call if the denial of one of its items is remembered. The
// other items are allowed and Undecided. It appends the number of settlements
// so far for the key of each item.
func (d *denyCache) recall(settled []uint64, c *call, now time.Duration) (counts []uint64, denied bool) {
	for i := range c.items {
		it := &c.items[i]
		sh := d.shard(it.hash)
		sh.mu.Lock()
		latest := sh.denials[it.hash]
		settled = append(settled, sh.settled)
		sh.mu.Unlock()
		known := latest.of(it)
		if known == nil || now >= known.until {
			continue
		}
		if !denied {
			for j := range c.items {
				c.items[j].decision = algorithms.Decision{Allowed: true}
			}
			denied = true
		}
		it.decision = known.decision
		countDown(&it.decision, now-known.answered)
	}
	return settled, denied
}

// of returns the denial of an item's key, limit and need among d and the earlier
// ones; nil if there is none. Another key may have the same hash.
func (d *denial) of(it *item) *denial {
	for ; d != nil; d = d.earlier {
		if d.need == it.Need && d.key == it.Key && d.limit == it.Limit {
			return d
		}
	}
	return nil
}

// but returns up to most of d and the earlier denials, without expired ones and
// without the denial that n replaces.
func (d *denial) but(n *denial, most int) *denial {
	switch {
	case d == nil || most == 0:
		return nil
	case d.until <= n.answered || d.need == n.need && d.limit == n.limit:
		return d.earlier.but(n, most)
	}
	kept := *d
	kept.earlier = d.earlier.but(n, most-1)
	return &kept
}

// remember keeps the denials of a call that was asked and answered at these
// instants.
func (d *denyCache) remember(c *call, settled []uint64, asked, answered time.Duration) {
	for i := range c.items {
		it := &c.items[i]
		if it.decision.Allowed || it.decision.Source != algorithms.Shared || len(it.Key.Text) > maxKept || !it.Limit.Row.Remembered {
			continue
		}
		d.shard(it.hash).put(it.hash, settled[i], &denial{
			key: it.Key.Clone(), limit: it.Limit, need: it.Need, decision: it.decision,
			until: asked + min(it.decision.RetryAfter, rememberFor), answered: answered,
		})
	}
}

// put stores a denial, unless a settlement came after the question. If there is
// no room it replaces another denial.
func (sh *denyShard) put(hash, settled uint64, n *denial) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if sh.settled != settled {
		return
	}
	dropSome(sh.denials, func(old *denial) bool { return old.until <= n.answered })
	if len(sh.denials) >= sh.limit && sh.denials[hash] == nil {
		for other := range sh.denials {
			delete(sh.denials, other)
			break
		}
	}
	n.earlier = sh.denials[hash].but(n, costsPerKey-1)
	sh.denials[hash] = n
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
