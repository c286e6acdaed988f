// Leases: takes of hot keys are answered from blocks of units that this process
// has charged in advance in the limiter below.
//
//	lease.go        how a call is answered
//	lease_block.go  how hot keys are found, and the blocks that their takes spend
//	lease_refill.go how blocks are fetched and closed, and their unspent units go back
//
// Exactness. A block is charged below before a unit of it is spent here, so in
// total no more is admitted than without leases. A call of several items is all
// or nothing: units are spent first, the limiter below is asked for the rest,
// and the units are put back if the rest is denied. Example: a call takes 1
// unit of a leased key and 1 of another. The first is spent from a block. The
// limiter below denies the second, so the first goes back to its block, and no
// unit is charged.
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

// maxLeasedItems is the most items of a call that leases answer.
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
	closing   chan struct{} // the watch receives from it when it does not tend, and then ends
	refills   sync.WaitGroup
	close     func() error // ends all leases and gives unspent units back; later calls pass through

	mu     sync.Mutex // guards the fields below, and adding to refills
	keys   []*hotKey
	back   []step.Item // returns that go below next
	awake  bool        // the alarm is set, or the watch tends
	closed bool        // nothing is leased any more
	ended  bool        // close has given back everything
}

// newLease returns a lease that works once its watch runs. The options have
// their defaults.
func newLease(next layer, o *LeaseOptions, r *report) *lease {
	l := &lease{
		next: next, options: *o, start: time.Now(), heat: newHeat(o.MaxKeys), report: r,
		tendEvery: o.Hold / 4,
		hotVotes:  max(1, o.HotAt/int(time.Second/heatEpoch)),
		hotPace:   int64(o.HotAt) * int64(o.Hold) / int64(2*time.Second),
		eased:     func([]item) {},
		alarm:     time.NewTimer(o.Hold), closing: make(chan struct{}),
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
	var holdings [maxLeasedItems]holding
	var places [maxLeasedItems]int
	held := holdings[:len(c.items)]
	rest := l.spend(held, places[:0], c, now)
	if len(rest) == len(c.items) {
		return l.ask(ctx, c, now)
	}
	charged := true
	if len(rest) > 0 {
		var err error
		if charged, err = l.askForRest(ctx, c, held, rest, now); err != nil {
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

// hotKey returns the key of an item if it is leased, and nil otherwise.
func (l *lease) hotKey(it *item) *hotKey {
	if k := l.heat.slot(it.hash).hot.Load(); k != nil && k.key == it.Key {
		return k
	}
	return nil
}

// spend spends the cost of every item whose key has enough units on lease. It
// appends the places of the other items to rest.
func (l *lease) spend(held []holding, rest []int, c *call, now time.Duration) []int {
	for i := range c.items {
		it := &c.items[i]
		if l.leasable(it) {
			held[i] = l.spendItem(it, now)
		}
		if held[i].block == nil {
			rest = append(rest, i)
		}
	}
	return rest
}

// spendItem spends the cost of an item from the oldest block that has enough units.
func (l *lease) spendItem(it *item, now time.Duration) holding {
	k := l.hotKey(it)
	if k == nil {
		return holding{}
	}
	if k.limit != it.Limit {
		l.endLease(k, &it.Limit, false, now)
		return holding{}
	}
	for _, b := range k.stock.Load() {
		if now >= b.until {
			continue
		}
		if left, ok := b.spend(it.Cost); ok {
			l.refill(k, it.Cost, now)
			return holding{k, b, left}
		}
	}
	return holding{}
}

// ask lets the limiter below answer. Its answers show which keys are hot, and
// how many units their limits have left.
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

// askForRest asks for the items in these places, which no block has answered, and
// reports whether the call proceeds. If it does not, the blocks get their units
// back.
func (l *lease) askForRest(ctx context.Context, c *call, held []holding, places []int, now time.Duration) (bool, error) {
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
		if k := l.hotKey(it); k != nil && it.Op == step.Reset {
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
	k := &hotKey{key: it.Key.Clone(), limit: it.Limit, slot: s, current: it.Limit, at: now}
	k.share = it.Limit.Burst * int64(l.options.Share) / 100
	k.pace.Store(l.hotPace * it.Cost)
	k.stock.Store(&empty)
	l.keys = append(l.keys, k)
	s.hot.Store(k)
	l.wake()
	return k
}
