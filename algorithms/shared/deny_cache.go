package algorithms

import (
	"context"
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"
)

// rememberDenied is the longest that a denial is remembered: what another
// instance gives back acts after it.
const rememberDenied = time.Second

// A denyCache remembers denials of the limiter below. For every algorithm, a
// denied cost stays denied until its RetryAfter, as long as others only take:
// what is in use only grows by takes. (Not so by returns, grants and resets.)
type denyCache struct {
	next   Limiter
	seed   maphash.Seed
	start  time.Time // of the clock that instants below count from, monotonic
	shards [64]denyShard
	hits   atomic.Uint64
}

type denyShard struct {
	limit   int
	mu      sync.Mutex         // guards what follows
	denials map[uint64]*denial // by the hash of their identity
	settled uint64             // settlements so far
}

// A denial is what one cost of one limit was denied with. It is immutable.
type denial struct {
	identity
	limit    Limit
	need     int64
	until    time.Duration // since the cache's start
	answered time.Duration
	decision Decision
}

func newDenyCache(next Limiter, maxKeys int) *denyCache {
	c := &denyCache{next: next, seed: maphash.MakeSeed(), start: time.Now()}
	for i := range c.shards {
		c.shards[i].limit = (maxKeys + len(c.shards) - 1) / len(c.shards)
		c.shards[i].denials = make(map[uint64]*denial)
	}
	return c
}

// Allow implements Limiter.
func (c *denyCache) Allow(ctx context.Context, checks []Check) error {
	if len(checks) == 0 {
		return c.next.Allow(ctx, checks)
	}
	if checks[0].Op.settles() {
		return c.settle(ctx, checks)
	}
	if ctx.Err() != nil || !rememberable(checks) {
		return c.next.Allow(ctx, checks)
	}
	now := time.Since(c.start)
	var room [8]uint64
	settled, denied := c.recall(room[:0], checks, now)
	if denied {
		c.hits.Add(1)
		return nil
	}
	if err := c.next.Allow(ctx, checks); err != nil {
		return err
	}
	if !Allowed(checks) {
		c.remember(checks, settled, now, time.Since(c.start))
	}
	return nil
}

// rememberable reports whether a call may be answered from memory: not if a
// trial wants to count it, or a check to be exact, and not what is invalid.
func rememberable(checks []Check) bool {
	for i := range checks {
		if checks[i].Op != Take || checks[i].Exact || checks[i].validate() != nil {
			return false
		}
	}
	return true
}

// settle drops what it may make untrue, before and after: a denial may be
// decided, and remembered, while it is under way.
func (c *denyCache) settle(ctx context.Context, checks []Check) error {
	c.forget(checks)
	err := c.next.Allow(ctx, checks)
	c.forget(checks)
	return err
}

func (c *denyCache) forget(checks []Check) {
	for i := range checks {
		if op := checks[i].Op; op == Force || op == Renew { // these only make it longer
			continue
		}
		hash, sh := c.place(&checks[i])
		sh.mu.Lock()
		delete(sh.denials, hash)
		sh.settled++
		sh.mu.Unlock()
	}
}

// place returns where denials of a check are remembered: those of another one,
// if the hashes are the same.
func (c *denyCache) place(check *Check) (hash uint64, sh *denyShard) {
	hash = name{check.Limit.algorithm, check.Policy, check.Key}.hash(c.seed)
	return hash, &c.shards[hash%uint64(len(c.shards))]
}

// need is what check i asks from its key together with those before it.
func need(checks []Check, i int) int64 {
	sum := checks[i].units()
	for j := range i {
		if checks[j].Policy == checks[i].Policy && checks[j].Key == checks[i].Key &&
			checks[j].Limit.algorithm == checks[i].Limit.algorithm {
			sum += checks[j].units()
		}
	}
	return sum
}

// recall answers the call, if one of its checks is remembered as denied. It
// appends to settled how many settlements there were where each check's key is:
// a denial that a settlement may have overtaken must not be remembered.
func (c *denyCache) recall(settled []uint64, checks []Check, now time.Duration) (counts []uint64, denied bool) {
	for i := range checks {
		hash, sh := c.place(&checks[i])
		sh.mu.Lock()
		d := sh.denials[hash]
		settled = append(settled, sh.settled)
		sh.mu.Unlock()
		if d == nil || now >= d.until || d.identity != identityOf(&checks[i]) ||
			d.limit != checks[i].Limit || d.need != need(checks, i) {
			continue
		}
		if !denied { // the first one: the others are not asked
			for j := range checks {
				checks[j].Decision = Decision{Allowed: true}
			}
			denied = true
		}
		checks[i].Decision = d.since(now - d.answered)
	}
	return settled, denied
}

// since returns the decision as it is when some time has passed.
func (d *denial) since(elapsed time.Duration) Decision {
	elapsed = max(0, elapsed.Truncate(time.Microsecond))
	left := func(wait time.Duration) time.Duration {
		if wait == Never {
			return Never
		}
		return max(0, wait-elapsed)
	}
	now := d.decision
	now.RetryAfter, now.ResetAfter, now.UnitAfter = left(now.RetryAfter), left(now.ResetAfter), left(now.UnitAfter)
	return now
}

// remember keeps the denials of a call, but for those of concurrent requests:
// any of these may end at once, at another instance. They are certain for their waits from
// before it was asked; what is told counts from when it was answered, so that
// it is never early.
func (c *denyCache) remember(checks []Check, settled []uint64, asked, answered time.Duration) {
	for i := range checks {
		d := &checks[i].Decision
		if d.Allowed || d.Source != Shared || len(checks[i].Key) > maxKept || checks[i].Limit.algorithm.Concurrent() {
			continue
		}
		hash, sh := c.place(&checks[i])
		sh.put(hash, settled[i], &denial{
			identity: identityOf(&checks[i]).clone(),
			limit:    checks[i].Limit, need: need(checks, i), decision: *d,
			until: asked + min(d.RetryAfter, rememberDenied), answered: answered,
		})
	}
}

// put stores a denial, unless there were settlements since it was asked for. If
// there is no room it replaces another, a past one if the few that it looks at
// have one.
func (sh *denyShard) put(hash uint64, settled uint64, d *denial) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if sh.settled != settled {
		return
	}
	looked := 0
	for other, past := range sh.denials { // begins anywhere
		if past.until <= d.answered {
			delete(sh.denials, other)
		}
		if looked++; looked == 4 {
			break
		}
	}
	if _, known := sh.denials[hash]; !known && len(sh.denials) >= sh.limit {
		for other := range sh.denials {
			delete(sh.denials, other)
			break
		}
	}
	sh.denials[hash] = d
}

func (c *denyCache) len() (n int) {
	for i := range c.shards {
		sh := &c.shards[i]
		sh.mu.Lock()
		n += len(sh.denials)
		sh.mu.Unlock()
	}
	return n
}
