// Hot keys: how they are found, and the blocks of units that their takes spend
// without a lock.
//
// How hot keys are found. A key is hot when it has had enough admitted takes in
// one epoch. A fixed amount of memory serves any number of keys: a key's hash
// selects a slot. A slot has one counter, and counts by the majority vote of
// Boyer and Moore ("MJRTY: A Fast Majority Vote Algorithm", 1981): a take of
// the slot's own key adds one vote, and a take of any other key removes one. At
// zero votes, the next key takes the slot over. Each epoch begins at zero.
// Example: the takes a a b a leave the key a with 1, 2, 1, 2 votes.
//
// Only takes of the key itself add votes, so its count never exceeds its takes:
// a cold key never becomes hot. Only a key with more takes than all other keys
// of its slot together can win the slot, and it has at least the difference in
// votes. There are 16 slots for each key that may be leased, so a slot has few
// other takes.
//
// How long a block lasts. Its units may be spent for three quarters of Hold
// after the block was asked for. tend looks every quarter of Hold, so at the
// latest when Hold has passed it gives back the rest.
//
// Windows. A unit is charged to the window in which the store took it. Spent in
// the next window it would exceed that window's requests, so a block of a
// window ends with the window. The take's ResetAfter says how much of the window
// is left. It counts from the store's instant, which is later than the question,
// so the block ends no later than the store's window. A sliding counter also has
// weight in the window after, which ResetAfter includes.

package lease

import (
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/algorithms/internal/step"
)

const (
	// heatEpoch is the time in which takes are counted.
	heatEpoch = 100 * time.Millisecond

	// slotsPerKey keeps hot keys apart. Only one key of a slot can be leased; the
	// wrapped limiter decides the takes of its other keys.
	slotsPerKey = 16

	// maxKey is the longest key, in bytes, that is leased. Clients may choose keys,
	// so a bound on the number of keys alone would not bound memory.
	maxKey = 1024 + 128
)

// A slot counts the takes of one key.
type slot struct {
	hot atomic.Pointer[hotKey] // the slot's key that is leased; nil if none

	mu    sync.Mutex // guards the fields below
	voter uint32     // bits of a key's hash that do not select the slot
	epoch int32
	votes int32 // of the voter, in this epoch
}

// vote counts a take of a key, and returns the key's votes in this epoch.
func (s *slot) vote(hash uint64, now time.Duration) int {
	voter, epoch := uint32(hash>>32), int32(now/heatEpoch)
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.epoch != epoch || s.votes == 0:
		s.voter, s.epoch, s.votes = voter, epoch, 1
	case s.voter == voter:
		s.votes++
	default:
		s.votes--
		return 0
	}
	return int(s.votes)
}

// A hotKey is a key that is leased.
type hotKey struct {
	key   step.Key
	limit algorithms.Limit
	slot  *slot

	stock     atomic.Pointer[stock]
	remaining atomic.Int64 // of the limit, by the latest answer of the wrapped limiter
	asked     atomic.Int64 // units that takes have asked for, except units of blocks in stock
	pace      atomic.Int64 // units asked for in half of Hold
	refillAt  atomic.Int64 // since start: no fetch before

	mu      sync.Mutex       // guards the fields below, and changes of stock
	reset   bool             // the wrapped limiter has forgotten the units on lease: none go back
	current algorithms.Limit // of the key now: units go back under it
	counted int64            // units that takes had asked for, when they were last counted
	at      time.Duration    // when it was counted
}

// keyOf returns the identity of the state that a check counts in.
func keyOf(c *algorithms.Check) step.Key {
	return step.Key{Policy: c.Policy, Text: c.Key, Scope: c.Limit.Step().Scope}
}

// find returns the key of a check if it is leased, and nil otherwise. It also
// returns the key's slot and hash.
func (l *Limiter) find(c *algorithms.Check) (*hotKey, *slot, uint64) {
	key := keyOf(c)
	hash := key.Hash(l.seed)
	s := &l.slots[hash&uint64(len(l.slots)-1)]
	if k := s.hot.Load(); k != nil && k.key == key {
		return k, s, hash
	}
	return nil, s, hash
}

// startLease makes the key of a check hot. It returns nil if there is no room,
// or if the key is too long to be kept.
func (l *Limiter) startLease(s *slot, c *algorithms.Check, now time.Duration) *hotKey {
	l.mu.Lock()
	defer l.mu.Unlock()
	if s.hot.Load() != nil || l.closed || len(l.keys) >= l.options.MaxKeys || len(c.Key) > maxKey {
		return nil
	}
	k := &hotKey{key: keyOf(c).Clone(), limit: c.Limit, slot: s, current: c.Limit, at: now}
	k.pace.Store(l.options.hotPace() * c.Cost)
	k.stock.Store(&empty)
	l.keys = append(l.keys, k)
	s.hot.Store(k)
	l.wake()
	return k
}

// closed reports whether the key is no longer leased.
func (k *hotKey) closed() bool { return k.slot.hot.Load() != k }

// measure returns how many units are asked for in a span of time, as a moving
// average. It requires mu.
func (k *hotKey) measure(span, now time.Duration) int64 {
	asked := k.asked.Load()
	for _, b := range k.stock.Load() {
		asked += b.size - b.onLease()
	}
	elapsed := max(now-k.at, span/4) // a shorter time says little
	recent, _ := step.MulDiv(max(0, asked-k.counted), int64(span), int64(elapsed))
	pace := (k.pace.Load() + recent) / 2
	k.pace.Store(pace)
	k.counted, k.at = asked, now
	return pace
}

// A stock is the older and the newer block of a key.
type stock [2]*block

// none stands for a missing block of a stock. It has no units, and has ended.
// Closing it changes nothing.
var none, empty = new(block), stock{none, none}

// A block is units that were charged together, to be spent here.
type block struct {
	left     atomic.Int64 // units; negative once closed, which ends spending
	size     int64        // units at first
	until    time.Duration
	turn     time.Duration // its units are worth nothing from then on
	answered time.Duration
	decision algorithms.Decision // of the take that charged it
}

// newBlock returns the block of an answered take, to be spent until lasts after
// the question. A block that must not be spent has ended.
func newBlock(c *algorithms.Check, err error, asked, answered, lasts time.Duration) *block {
	d := &c.Decision
	b := &block{size: d.Receipt.Units(), until: asked + lasts, turn: math.MaxInt64, answered: answered, decision: *d}
	end := asked + d.ResetAfter // of the window: a block that was admitted fits into it
	switch refill := c.Limit.Step().Row.Refill; {
	case err != nil: // the store may have charged it: its units are lost
		b.size, b.until, b.turn = c.Cost, 0, 0
	case b.size == 0 || d.Source != algorithms.Shared: // other processes do not count its units: they go back
		b.until = 0
	case refill == step.Sliding:
		b.until = min(b.until, end-c.Limit.Window())
	case refill == step.AtTurns:
		b.until, b.turn = min(b.until, end), end
	}
	b.left.Store(b.size)
	return b
}

// spend takes units from the block, unless it has too few, has ended or has been
// closed. It returns how many are left. A negative number puts units back.
func (b *block) spend(units int64, now time.Duration) (left int64, ok bool) {
	for now < b.until {
		old := b.left.Load()
		if old < max(0, units) {
			break
		}
		if b.left.CompareAndSwap(old, old-units) {
			return old - units, true
		}
	}
	return 0, false
}

// onLease returns the units that can be spent.
func (b *block) onLease() int64 { return max(0, b.left.Load()) }

// receiptOf returns the receipt of a part of the block.
func (b *block) receiptOf(units int64) algorithms.Receipt {
	r := b.decision.Receipt.Step()
	r.Units = units
	return algorithms.ReceiptOf(r)
}

// A holding is the units that a take has spent from a block.
type holding struct {
	key   *hotKey
	block *block // nil: nothing was spent
	left  int64  // in the block
}

// decide writes the decision of a take that has spent units: the decision of the
// block's own take, with the wait for the full limit counted down.
func (h *holding) decide(c *algorithms.Check, now time.Duration) {
	d := &c.Decision
	*d = h.block.decision
	if d.ResetAfter != algorithms.Never {
		d.ResetAfter = max(0, d.ResetAfter-max(0, (now-h.block.answered).Truncate(time.Microsecond)))
	}
	d.Remaining, d.Receipt = h.left, h.block.receiptOf(c.Cost)
	if newer := h.key.stock.Load()[1]; newer != h.block {
		d.Remaining += newer.onLease()
	}
}
