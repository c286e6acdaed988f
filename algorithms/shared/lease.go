package algorithms

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// maxHeld is how many checks a call may have for leases to look at it.
const maxHeld = 8

// A lease answers takes of hot keys from blocks of units, which it takes from
// the limiter below. A caller's take never waits for a block: while there is
// none it is decided below.
type lease struct {
	next     Limiter
	options  LeaseOptions
	policies map[string]bool // nil: all
	step     time.Duration   // between two looks at the hot keys
	hotVotes int             // takes in an epoch that make a key hot
	hotPace  int64           // takes in half of Hold
	start    time.Time       // of the clock that instants count from, monotonic
	heat     *heat
	observe  func(Event)
	eased    func([]Check) // is told for which keys there are units again

	closed  atomic.Bool
	wake    chan struct{} // a value: there is something to look after
	closing chan struct{}
	watched chan struct{}
	once    sync.Once // of close
	err     error     // of close

	refills sync.WaitGroup
	counts  leaseCounters

	mu   sync.Mutex // guards what follows, and adding to refills
	keys []*hotKey
	back []Check // returns that are to be made
}

// newLease returns a lease that works once its watch runs.
func newLease(next Limiter, o LeaseOptions, observe func(Event)) *lease {
	l := &lease{
		next: next, options: o, start: time.Now(), heat: newHeat(o.MaxKeys),
		step:     o.Hold / 4,
		hotVotes: max(1, o.HotAt*int(heatEpoch)/int(time.Second)),
		hotPace:  int64(o.HotAt) * int64(o.Hold) / int64(2*time.Second),
		observe:  func(Event) {}, eased: func([]Check) {},
		wake: make(chan struct{}, 1), closing: make(chan struct{}), watched: make(chan struct{}),
	}
	if observe != nil {
		l.observe = classified(observe)
	}
	for _, policy := range o.Policies {
		if l.policies == nil {
			l.policies = make(map[string]bool)
		}
		l.policies[policy] = true
	}
	return l
}

// now returns the instant that it is.
func (l *lease) now() time.Duration { return time.Since(l.start) }

// Allow implements Limiter.
func (l *lease) Allow(ctx context.Context, checks []Check) error {
	switch {
	case len(checks) == 0:
		return l.next.Allow(ctx, checks)
	case checks[0].Op.settles():
		return l.settle(ctx, checks)
	case ctx.Err() != nil || !onlyTakes(checks):
		return l.next.Allow(ctx, checks)
	}
	now := l.now()
	var buf [maxHeld]holding
	held := buf[:len(checks)]
	n := l.hold(held, checks, now)
	charged := true
	switch n {
	case 0:
		return l.pass(ctx, checks, now)
	case len(checks):
	default:
		var err error
		if charged, err = l.passRest(ctx, checks, held, now); err != nil {
			return err
		}
	}
	for i := range held {
		if held[i].block != nil {
			checks[i].Decision = held[i].decision(checks[i].Cost, now, charged)
		}
	}
	return nil
}

// onlyTakes reports whether a call is one of takes only, each of a key of its own.
func onlyTakes(checks []Check) bool {
	if len(checks) > maxHeld {
		return false
	}
	for i := range checks {
		if checks[i].Op != Take {
			return false
		}
		for j := range i {
			if identityOf(&checks[i]) == identityOf(&checks[j]) {
				return false
			}
		}
	}
	return true
}

// leasable reports whether a take may be leased: of an algorithm for which units
// that are spent later than they were charged do no harm but the one that
// LeaseOptions state.
func (l *lease) leasable(c *Check) bool {
	switch c.Limit.algorithm {
	case algorithmTokenBucket, algorithmSlidingWindowCounter, algorithmFixedWindow, algorithmCalendarWindow:
		return c.Cost > 0 && !c.Exact && (l.policies == nil || l.policies[c.Policy])
	default:
		return false
	}
}

// hold takes the units of every check whose key has enough of them on lease,
// and returns how many it has.
func (l *lease) hold(held []holding, checks []Check, now time.Duration) (n int) {
	for i := range checks {
		c := &checks[i]
		if !l.leasable(c) {
			continue
		}
		s, _ := l.heat.slot(identityOf(c))
		k := s.hot.Load()
		if k == nil || k.identity != identityOf(c) {
			continue
		}
		if k.limit != c.Limit {
			l.end(k, c.Limit, false, now)
			continue
		}
		if held[i] = k.take(c.Cost, now); held[i].block != nil {
			n++
			l.refill(k, c.Cost, now)
		}
	}
	return n
}

// pass asks the limiter below, and learns from its answers which keys are hot
// and what they have left.
func (l *lease) pass(ctx context.Context, checks []Check, now time.Duration) error {
	if err := l.next.Allow(ctx, checks); err != nil || !Allowed(checks) {
		return err
	}
	for i := range checks {
		c := &checks[i]
		if c.Decision.Source != Shared || !l.leasable(c) {
			continue
		}
		s, hash := l.heat.slot(identityOf(c))
		k := s.hot.Load()
		if k == nil && s.vote(hash, now) >= l.hotVotes {
			k = l.begin(s, c, now)
		}
		if k == nil || k.identity != identityOf(c) || k.limit != c.Limit {
			continue
		}
		k.passed.Add(c.Cost)
		k.remaining.Store(c.Decision.Remaining)
		l.refill(k, c.Cost, now)
	}
	return nil
}

// passRest passes on what is not held, and reports whether the call proceeds. If
// not, what is held is put back.
func (l *lease) passRest(ctx context.Context, checks []Check, held []holding, now time.Duration) (bool, error) {
	rest := make([]Check, 0, len(checks))
	for i := range checks {
		if held[i].block == nil {
			rest = append(rest, checks[i])
		}
	}
	err := l.pass(ctx, rest, now)
	proceeds := err == nil && Allowed(rest)
	for i := range checks {
		switch b := held[i].block; {
		case b == nil:
			checks[i].Decision, rest = rest[0].Decision, rest[1:]
		case !proceeds && !b.put(checks[i].Cost):
			l.unspend(held[i].key, b, checks[i].Cost)
		}
	}
	return proceeds, err
}

// settle passes settlements on. After a Reset nothing may be spent that was
// taken before it.
func (l *lease) settle(ctx context.Context, checks []Check) error {
	err := l.next.Allow(ctx, checks)
	for i := range checks {
		c := &checks[i]
		if c.Op != Reset {
			continue
		}
		s, _ := l.heat.slot(identityOf(c))
		if k := s.hot.Load(); k != nil && k.identity == identityOf(c) {
			l.end(k, c.Limit, true, l.now())
		}
	}
	return err
}

// begin makes a key hot; nil if there is no room for it, or it is itself too
// large for a bound of keys to bound memory.
func (l *lease) begin(s *slot, c *Check, now time.Duration) *hotKey {
	l.mu.Lock()
	defer l.mu.Unlock()
	if k := s.hot.Load(); k != nil || l.closed.Load() || len(l.keys) >= l.options.MaxKeys || len(c.Key) > maxKept {
		return k
	}
	share := c.Limit.burst * int64(l.options.Share) / 100
	k := newHotKey(s, c, share, l.hotPace*c.Cost, now)
	l.keys = append(l.keys, k)
	s.hot.Store(k)
	l.call()
	return k
}

// end ends the lease of a key. What is left goes back, under the limit that the
// key has now, unless the key was reset.
func (l *lease) end(k *hotKey, limit Limit, reset bool, now time.Duration) {
	k.mu.Lock()
	k.reset = k.reset || reset
	back := l.finish(k, limit, now)
	k.mu.Unlock()
	l.giveBack(back)
}

// finish ends the lease of a key, and returns what is to go back. It requires
// the key's mu.
func (l *lease) finish(k *hotKey, limit Limit, now time.Duration) []Check {
	if k.gone {
		return nil
	}
	k.slot.hot.CompareAndSwap(k, nil)
	k.gone, k.current = true, limit
	return l.retire(k, *k.stock.Swap(new(stock)), now)
}

// unspend is put for a block that has been closed.
func (l *lease) unspend(k *hotKey, b *block, units int64) {
	k.mu.Lock()
	back := l.left(k, nil, b, units, l.now())
	k.mu.Unlock()
	l.counts.spent.Add(-units)
	l.giveBack(back)
}
