package algorithms

import (
	"math"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// minTakes is how many takes a block must be good for to be worth a call.
	minTakes = 4
	// taper is the part of what a limit has left that a block may be, so that
	// blocks shrink to nothing as the limit is used up.
	taper = 8
	// busy is the refillAt of a key whose refill is under way.
	busy = math.MaxInt64
)

// A hotKey is a key that is leased. Takes spend from its blocks without a lock.
type hotKey struct {
	identity
	limit Limit
	slot  *slot
	share int64 // the units that may be on lease

	stock     atomic.Pointer[stock]
	remaining atomic.Int64 // that the limiter below told last
	passed    atomic.Int64 // units that it was asked for, one take at a time
	pace      atomic.Int64 // units that are asked for in half of Hold
	refillAt  atomic.Int64 // the instant, since the start, that the next refill may begin at

	mu      sync.Mutex    // guards what follows, and changes of stock
	gone    bool          // no longer leased: a block that arrives goes back
	reset   bool          // and what was taken is forgotten: it does not
	current Limit         // under which units go back: it may have changed
	spent   int64         // units of closed blocks
	asked   int64         // units by the last look
	looked  time.Duration // when that was
}

// newHotKey returns a key that has nothing on lease. It keeps nothing of the
// caller's.
func newHotKey(s *slot, c *Check, share, pace int64, now time.Duration) *hotKey {
	k := &hotKey{
		identity: identityOf(c).clone(),
		limit:    c.Limit, slot: s, share: share, current: c.Limit, looked: now,
	}
	k.pace.Store(pace)
	k.stock.Store(new(stock))
	return k
}

// A stock is the older and the newer block of a key; nil is none.
type stock [2]*block

// A block is units that were taken at once, and are spent here.
type block struct {
	left     atomic.Int64  // units; negative if closed
	units    int64         // at first
	until    time.Duration // spent no more from this instant on, since the start
	turn     time.Duration // the end of its fixed window, when it is worth nothing
	answered time.Duration
	decision Decision // of the take
}

// newBlock returns what a take has got, to be spent until hold has passed since
// it was asked for. If it is of a window, that has ended for the limiter below
// no sooner than what it had left then has passed since, too.
func newBlock(c *Check, asked, answered, hold time.Duration) *block {
	r := c.Decision.Receipt
	b := &block{units: r.units, until: asked + hold, turn: math.MaxInt64, answered: answered, decision: c.Decision}
	b.left.Store(b.units)
	if !c.Limit.algorithm.Continuous() {
		end := asked + until(c.Limit.turn(r.t, 1), r.at)
		b.until = min(b.until, end)
		if c.Limit.algorithm.Aligned() {
			b.turn = end
		}
	}
	return b
}

// take takes units, and returns how many are left.
func (b *block) take(units int64, now time.Duration) (left int64, ok bool) {
	if now >= b.until {
		return 0, false
	}
	for {
		old := b.left.Load()
		if old < units {
			return 0, false
		}
		if b.left.CompareAndSwap(old, old-units) {
			return old - units, true
		}
	}
}

// put puts units back that were taken, unless the block has been closed.
func (b *block) put(units int64) bool {
	for {
		old := b.left.Load()
		if old < 0 {
			return false
		}
		if b.left.CompareAndSwap(old, old+units) {
			return true
		}
	}
}

// close keeps takes off the block, and returns what is left of it.
func (b *block) close() int64 { return max(0, b.left.Swap(-1)) }

func (b *block) held() int64 {
	if b == nil {
		return 0
	}
	return max(0, b.left.Load())
}

// receipt is that of a part of the block's take.
func (b *block) receipt(units int64) Receipt {
	r := b.decision.Receipt
	r.units = units
	return r
}

// measure returns how many units are asked for in a span of time, on a sliding
// average of looks that are at least so far apart. It requires mu.
func (k *hotKey) measure(span, apart, now time.Duration) int64 {
	elapsed := now - k.looked
	if elapsed < apart {
		return k.pace.Load()
	}
	asked := k.spent + k.passed.Load()
	for _, b := range k.stock.Load() {
		if b != nil {
			asked += b.units - b.held()
		}
	}
	recent, _ := mulDiv(max(0, asked-k.asked), int64(span), int64(elapsed))
	pace := (k.pace.Load() + recent) / 2
	k.pace.Store(pace)
	k.asked, k.looked = asked, now
	return pace
}

// A holding is units that a check has taken from a block.
type holding struct {
	key   *hotKey
	block *block // nil: none were taken
	left  int64
}

// take takes units from the oldest block that has them.
func (k *hotKey) take(units int64, now time.Duration) holding {
	for _, b := range k.stock.Load() {
		if b == nil {
			continue
		}
		if left, ok := b.take(units, now); ok {
			return holding{k, b, left}
		}
	}
	return holding{}
}

// held returns the units on lease.
func (k *hotKey) held() int64 {
	s := k.stock.Load()
	return s[0].held() + s[1].held()
}

// low reports whether the newer block, and so all, is half spent or past.
func (k *hotKey) low(now time.Duration) bool {
	b := k.stock.Load()[1]
	return b == nil || now >= b.until || b.left.Load() <= b.units/2
}

// blockSize returns how many units the next block should have; 0 if it is not
// worth it, given what a take costs.
func (k *hotKey) blockSize(cost int64) int64 {
	units := min(k.pace.Load(), k.share-k.held(), k.remaining.Load()/taper)
	if units/minTakes < cost {
		return 0
	}
	return units
}

// decision is what a check is told: what the block's own take was, as much later
// as it is now. Of units, it knows those on lease.
func (h *holding) decision(cost int64, now time.Duration, charged bool) Decision {
	elapsed := max(0, (now - h.block.answered).Truncate(time.Microsecond))
	d := h.block.decision
	d.ResetAfter = countDown(d.ResetAfter, elapsed)
	d.UnitAfter = countDown(d.UnitAfter, elapsed)
	d.Remaining, d.Receipt = h.left, Receipt{}
	if newer := h.key.stock.Load()[1]; newer != h.block {
		d.Remaining += newer.held()
	}
	if charged {
		d.Receipt = h.block.receipt(cost)
	} else {
		d.Remaining += cost
	}
	return d
}

// countDown returns what is left of a wait.
func countDown(wait, elapsed time.Duration) time.Duration {
	if wait == Never {
		return Never
	}
	return max(0, wait-elapsed)
}
