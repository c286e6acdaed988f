// The deny cache: denials that this process remembers, so that clients who retry
// cost the limiter below nothing.
//
// Why a denial can be remembered. Takes only add to what is in use, so a cost that
// was denied stays denied until its RetryAfter, whoever else takes. Only
// settlements change that. Those of this process drop the denial before and after
// they run. Those of other instances are seen when the denial expires, after a
// second at most. Concurrent requests are never remembered (Row.Remembered): any
// of them may end at once, at another instance.
//
// Answering. recall reads the caller's checks before a call is made of them, because
// making one takes a third of the time of an answer from memory. As a layer, the
// cache only learns.
//
// Overtaking. A settlement may run while a denial is on its way. Each shard counts
// the settlements of its keys. The count is read before the limiter below is
// asked, and the denial is dropped if the count has changed when it arrives.
//
// Time. A denial expires RetryAfter after it was asked for, because the limiter
// below decided no sooner. The waits that a remembered denial reports count from
// the answer, because the limiter below decided no later: they are never too short.

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

	// expiredSamples is how many denials a new one looks at, to replace those
	// that have expired.
	expiredSamples = 4

	denyShards = 64 // a power of two
)

// A denyCache remembers denials of the layers below.
type denyCache struct {
	next   layer
	start  time.Time // instants count from here, by the monotonic clock
	shards [denyShards]denyShard
	hits   atomic.Uint64
}

type denyShard struct {
	limit   int           // of denials
	settled atomic.Uint64 // settlements so far; it changes under mu
	size    atomic.Int64  // of denials; it changes under mu
	mu      sync.Mutex
	denials map[uint64]*denial // by the hash of the key; guarded by mu
}

// A denial is the answer to one need under one limit. It is immutable.
type denial struct {
	key      step.Key
	limit    algorithms.Limit // valid
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

// recall answers a call if the denial of one of its checks is remembered. The other
// checks are allowed, without having been asked.
func (d *denyCache) recall(checks []algorithms.Check) bool {
	var buf [8]*denial
	known, denied, now := buf[:0], false, time.Duration(0)
	for i := range checks {
		n := d.find(checks, i)
		if n != nil && now == 0 {
			now = time.Since(d.start)
		}
		if n != nil && now >= n.until {
			n = nil
		}
		known, denied = append(known, n), denied || n != nil
	}
	if !denied || !recallable(checks, known) {
		return false
	}
	for i, n := range known {
		c := &checks[i]
		if n == nil {
			c.Decision = algorithms.Decision{Allowed: true}
			continue
		}
		n.decide(&c.Decision, now)
	}
	d.hits.Add(1)
	return true
}

// recallable reports whether memory may answer a call, some of whose checks have a
// known denial. Trials must be counted, exact checks must be asked, and an invalid
// check is an error of its call.
func recallable(checks []algorithms.Check, known []*denial) bool {
	for i := range checks {
		c := &checks[i]
		if c.Op != algorithms.Take || c.Exact || c.Cost < 0 {
			return false
		}
		if known[i] == nil && !valid(c) { // all else of a denied check was valid before
			return false
		}
	}
	return step.Size(len(checks)) == nil
}

func valid(c *algorithms.Check) bool {
	var it step.Item
	return c.Item(&it) == nil
}

// find returns the remembered denial of a check; nil if there is none. Its time may
// be over.
func (d *denyCache) find(checks []algorithms.Check, i int) *denial {
	c := &checks[i]
	key := step.Key{Policy: c.Policy, Text: c.Key, Scope: c.Limit.Step().Scope}
	if key.Scope == nil { // the zero Limit
		return nil
	}
	hash := key.Hash(seed)
	sh := d.shard(hash)
	if sh.size.Load() == 0 {
		return nil
	}
	sh.mu.Lock()
	n := sh.denials[hash]
	sh.mu.Unlock()
	// A denial of another key may have the same hash.
	if n == nil || n.key != key || n.limit != c.Limit || n.need != needOf(checks, i) {
		return nil
	}
	return n
}

// needOf returns the Need of the item that a call would make of a check.
func needOf(checks []algorithms.Check, i int) int64 {
	c := &checks[i]
	need := min(c.Cost, step.MaxUnits)
	for j := range i {
		o := &checks[j]
		if o.Key == c.Key && o.Policy == c.Policy && o.Limit.Step().Scope == c.Limit.Step().Scope {
			need += min(o.Cost, step.MaxUnits)
		}
	}
	return need
}

// decide writes the denial as it is at now, with its waits counted down.
func (n *denial) decide(d *algorithms.Decision, now time.Duration) {
	elapsed := max(0, (now - n.answered).Truncate(time.Microsecond))
	*d = n.decision
	d.RetryAfter = countDown(d.RetryAfter, elapsed)
	d.ResetAfter = countDown(d.ResetAfter, elapsed)
	d.UnitAfter = countDown(d.UnitAfter, elapsed)
}

func (d *denyCache) allow(ctx context.Context, c *call) error {
	if c.settles() {
		return d.settle(ctx, c)
	}
	if !rememberable(c) {
		return d.next.allow(ctx, c)
	}
	var buf [8]uint64
	settled := buf[:0]
	for i := range c.items {
		settled = append(settled, d.shard(c.items[i].hash).settled.Load())
	}
	asked := time.Since(d.start)
	if err := d.next.allow(ctx, c); err != nil {
		return err
	}
	if !c.proceeds() {
		d.remember(c, settled, asked, time.Since(d.start))
	}
	return nil
}

// rememberable reports whether denials of a call are remembered: of calls that memory
// could answer.
func rememberable(c *call) bool {
	for i := range c.items {
		if it := &c.items[i]; it.Op != step.Take || it.exact {
			return false
		}
	}
	return true
}

// settle drops the denials that a settlement may end, before and after it runs.
func (d *denyCache) settle(ctx context.Context, c *call) error {
	d.forget(c.items)
	err := d.next.allow(ctx, c)
	d.forget(c.items)
	return err
}

// forget drops the denials of items, except of those that only add to what is in
// use.
func (d *denyCache) forget(items []item) {
	for i := range items {
		it := &items[i]
		if it.Op == step.Force || it.Op == step.Renew {
			continue
		}
		sh := d.shard(it.hash)
		sh.mu.Lock()
		delete(sh.denials, it.hash)
		sh.size.Store(int64(len(sh.denials)))
		sh.settled.Add(1)
		sh.mu.Unlock()
	}
}

func (d *denyCache) shard(hash uint64) *denyShard { return &d.shards[hash%denyShards] }

// remember keeps the denials of a call that was asked and answered at these
// instants.
func (d *denyCache) remember(c *call, settled []uint64, asked, answered time.Duration) {
	for i := range c.items {
		it := &c.items[i]
		if it.decision.Allowed || it.decision.Source != algorithms.Shared || len(it.Key.Text) > maxKept || !it.Limit.Row.Remembered {
			continue
		}
		d.shard(it.hash).put(it.hash, settled[i], &denial{
			key: it.Key.Clone(), limit: algorithms.LimitOf(it.Limit), need: it.Need, decision: it.decision,
			until: asked + min(it.decision.RetryAfter, rememberFor), answered: answered,
		})
	}
}

// put stores a denial, unless there were settlements since it was asked for. If
// there is no room it replaces another.
func (sh *denyShard) put(hash, settled uint64, n *denial) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if sh.settled.Load() != settled {
		return
	}
	looked := 0
	for other, old := range sh.denials { // begins anywhere
		if old.until <= n.answered {
			delete(sh.denials, other)
		}
		if looked++; looked == expiredSamples {
			break
		}
	}
	if _, known := sh.denials[hash]; !known && len(sh.denials) >= sh.limit {
		for other := range sh.denials {
			delete(sh.denials, other)
			break
		}
	}
	sh.denials[hash] = n
	sh.size.Store(int64(len(sh.denials)))
}

func (d *denyCache) addStats(s *algorithms.Stats) {
	s.DenyCache.Hits = d.hits.Load()
	for i := range d.shards {
		s.DenyCache.Keys += int(d.shards[i].size.Load())
	}
}
