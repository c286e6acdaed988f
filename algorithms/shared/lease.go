// Leases: takes of hot keys are answered from blocks of units that the limiter
// below was asked for in advance.
//
//	lease.go        how a call is answered
//	lease_heat.go   how hot keys are found
//	lease_block.go  hot keys, and the blocks that their takes spend
//	lease_refill.go how blocks are fetched and closed, and their unspent units go back
//
// Exactness. A block is charged below before a unit of it is spent here, so in
// total no more is admitted than without leases. A call of several items is all
// or nothing: units are spent first, the limiter below is asked for the rest,
// and what was spent is unspent if the rest is denied.
//
// A caller never waits for a block. While a key has none, the limiter below
// decides its takes.

package shared

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/algorithms/internal/step"
)

// maxLeasedItems is how many items a call may have for leases to answer it.
const maxLeasedItems = 8

// A lease is the layer that answers from blocks.
type lease struct {
	next     layer
	options  LeaseOptions
	hotVotes int       // admitted takes in an epoch that make a key hot
	hotPace  int64     // admitted takes in half of Hold at that rate
	start    time.Time // instants count from here, by the monotonic clock
	heat     heat
	report   *report
	eased    func([]item) // receives items whose keys have units again
	counts   leaseCounts

	tendEvery time.Duration // a quarter of Hold
	alarm     *time.Timer   // wakes the watch
	closing   chan struct{}
	watched   chan struct{} // closed when the watch has ended
	refills   sync.WaitGroup
	close     func() error // ends all leases and gives unspent units back; later calls pass through

	mu     sync.Mutex // guards the fields below, and adding to refills
	keys   []*hotKey
	back   []unspent // what goes back next
	awake  bool      // the alarm is set, or the watch tends
	closed bool      // nothing is leased any more
	ended  bool      // close has given back everything
}

// newLease returns a lease that works once its watch runs. The options have
// their defaults.
func newLease(next layer, o *LeaseOptions, r *report) *lease {
	l := &lease{
		next: next, options: *o, start: time.Now(), heat: newHeat(o.MaxKeys), report: r,
		tendEvery: o.Hold / 4,
		hotVotes:  max(1, o.HotAt*int(heatEpoch)/int(time.Second)),
		hotPace:   int64(o.HotAt) * int64(o.Hold) / int64(2*time.Second),
		eased:     func([]item) {},
		alarm:     time.NewTimer(o.Hold), closing: make(chan struct{}), watched: make(chan struct{}),
	}
	l.alarm.Stop()
	l.close = sync.OnceValue(l.end)
	return l
}

// now returns the time since start.
func (l *lease) now() time.Duration { return time.Since(l.start) }

func (l *lease) allow(ctx context.Context, c *call) error {
	switch {
	case c.settles():
		return l.settle(ctx, c)
	case !onlyTakes(c):
		return l.next.allow(ctx, c)
	}
	now := l.now()
	var buf [maxLeasedItems]holding
	held := buf[:len(c.items)]
	charged := true
	switch l.spend(held, c, now) {
	case 0:
		return l.ask(ctx, c, now)
	case len(c.items):
	default:
		var err error
		if charged, err = l.askForRest(ctx, c, held, now); err != nil {
			return err
		}
	}
	for i := range held {
		if held[i].block != nil {
			held[i].decide(&c.items[i], now, charged)
		}
	}
	return nil
}

// onlyTakes reports whether a call is a few takes, each of a key of its own.
func onlyTakes(c *call) bool {
	if len(c.items) > maxLeasedItems {
		return false
	}
	for i := range c.items {
		if it := &c.items[i]; it.Op != step.Take || it.Home != &it.Item {
			return false
		}
	}
	return true
}

// leasable reports whether a block may answer a take.
func (l *lease) leasable(it *item) bool {
	return it.Limit.Row.Leased && it.Cost > 0 && !it.exact &&
		(len(l.options.Policies) == 0 || slices.Contains(l.options.Policies, it.Key.Policy))
}

// spend spends the cost of every item whose key has enough units on lease, and
// returns how many items that are.
func (l *lease) spend(held []holding, c *call, now time.Duration) (n int) {
	for i := range c.items {
		it := &c.items[i]
		if !l.leasable(it) {
			continue
		}
		k := l.heat.slot(it.hash).hot.Load()
		if k == nil || k.key != it.Key {
			continue
		}
		if k.limit != it.Limit {
			l.endLease(k, &it.Limit, false, now)
			continue
		}
		if held[i] = k.spend(it.Cost, now); held[i].block != nil {
			n++
			l.refill(k, it.Cost, now)
		}
	}
	return n
}

// ask lets the limiter below answer, and learns from its answers which keys are
// hot and what their limits have left.
func (l *lease) ask(ctx context.Context, c *call, now time.Duration) error {
	if err := l.next.allow(ctx, c); err != nil || !c.proceeds() {
		return err
	}
	for i := range c.items {
		it := &c.items[i]
		if it.decision.Source != algorithms.Shared || !l.leasable(it) {
			continue
		}
		s := l.heat.slot(it.hash)
		k := s.hot.Load()
		if k == nil && s.vote(it.hash, now) >= l.hotVotes {
			k = l.startLease(s, it, now)
		}
		if k == nil || k.key != it.Key || k.limit != it.Limit {
			continue
		}
		k.asked.Add(it.Cost)
		k.remaining.Store(it.decision.Remaining)
		l.refill(k, it.Cost, now)
	}
	return nil
}

// askForRest asks for the items that no block has answered, and reports whether
// the call proceeds. If it does not, the blocks get their units back.
func (l *lease) askForRest(ctx context.Context, c *call, held []holding, now time.Duration) (bool, error) {
	var buf [maxLeasedItems]int
	places := buf[:0]
	for i := range held {
		if held[i].block == nil {
			places = append(places, i)
		}
	}
	rest := c.sub(places)
	defer rest.free()
	err := l.ask(ctx, rest, now)
	proceeds := err == nil && rest.proceeds()
	for j, i := range places {
		c.items[i].decision = rest.items[j].decision
	}
	for i := range held {
		if held[i].block != nil && !proceeds {
			l.unspend(&held[i], c.items[i].Cost)
		}
	}
	return proceeds, err
}

// settle lets the limiter below settle. Units that were charged before a Reset
// must not be spent after it.
func (l *lease) settle(ctx context.Context, c *call) error {
	err := l.next.allow(ctx, c)
	for i := range c.items {
		it := &c.items[i]
		if it.Op != step.Reset {
			continue
		}
		if k := l.heat.slot(it.hash).hot.Load(); k != nil && k.key == it.Key {
			l.endLease(k, &it.Limit, true, l.now())
		}
	}
	return err
}

// startLease makes the key of an item hot. It returns nil if there is no room,
// or if the key is too long to be kept.
func (l *lease) startLease(s *slot, it *item, now time.Duration) *hotKey {
	l.mu.Lock()
	defer l.mu.Unlock()
	if k := s.hot.Load(); k != nil || l.closed || len(l.keys) >= l.options.MaxKeys || len(it.Key.Text) > maxKept {
		return k
	}
	share := it.Limit.Burst * int64(l.options.Share) / 100
	k := newHotKey(s, it, share, l.hotPace*it.Cost, now)
	l.keys = append(l.keys, k)
	s.hot.Store(k)
	l.wake()
	return k
}

// endLease ends the lease of a key. Unspent units go back under the limit that
// the key has now, unless the key was reset.
func (l *lease) endLease(k *hotKey, limit *step.Limit, reset bool, now time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.reset = k.reset || reset
	l.closeKey(k, limit, now)
}
