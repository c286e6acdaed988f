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
// after the block was asked for. The watch looks every quarter of Hold, so at
// the latest when Hold has passed it gives back the rest.
//
// How large a block is: as many units as the key asks for in half of Hold. The
// next block is fetched when the newer one is half spent. Its other half lasts
// a quarter of Hold, and the next block half of Hold, which is three quarters
// together: at a steady pace, a block is spent just before it ends. Larger
// blocks would be given back in part; smaller ones would need more calls.
// Example: 10 000 takes per second and a Hold of 100 ms make blocks of 500
// units, and 20 fetches per second.
//
// The last units. A leased unit costs no round trip, and any other unit costs
// one. So in one round trip a process with leases takes a block, and a process
// without leases takes a unit for each caller. Blocks must become small before
// the limit is used up. With r units left of a limit of L, a block has at most
// r·r / 4L units (taper is 4): a quarter of a fresh limit, an eighth of the rest
// at half of the limit, and a fortieth of the rest at the last tenth. Blocks end
// when that is less than minTakes units, which is r < 4·√L. These last units are
// taken one by one where every instance finds them, so few takes are denied
// because of units that another instance holds and does not spend.
// Example: of 10 000 units, a block has at most 625 when 5 000 are left, 25 when
// 1 000 are left, and there is none when less than 400 are left.
//
// Tried, with a fixed window of 100 000 per second and 16 callers in each of two
// processes with leases and two without. With an eighth of the rest at all times,
// a process with leases took 22 times as much of the last tenth as one without.
// With r·r / 4L it took less than 4 times as much. With no block in the last
// tenth, the parts were equal, but the last tenth took ten times as long as with
// an eighth, and a sliding window under a steady load of nine tenths would never
// be leased.
//
// Windows. A unit is charged to the window in which the store took it. Spent in
// the next window it would exceed that window's requests, so a block of a
// window ends with the window. The take's ResetAfter says how much of the window
// was left, by the store's clock, when the block was charged. This process counts
// that time from the question, which came earlier. So the block ends no later
// than the window, however long the answer took. Unspent units of a window that
// turns (Refill AtTurns) are worth nothing from then on. Units of a sliding
// window still weigh on the next one, so they go back. Buckets have no windows:
// a unit that is spent late is one more in an interval than the bucket would
// admit.

package shared

import (
	"math"
	"math/bits"
	"sync"
	"sync/atomic"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/algorithms/internal/step"
)

const (
	minTakes = 4             // fewer takes are not worth a block
	taper    = 4             // see above
	busy     = math.MaxInt64 // the refillAt of a key for which a block is being fetched

	// heatEpoch is the time in which takes are counted.
	heatEpoch = 100 * time.Millisecond

	// slotsPerKey keeps hot keys apart. Only one key of a slot can be leased;
	// the limiter below decides the takes of its other keys.
	slotsPerKey = 16

	// A slot's votes are 32 bits of a key's hash, 16 of the epoch, and 16 of the
	// count.
	countBits = 16
	maxVotes  = 1<<countBits - 1
)

// heat holds the slots of all keys: a power of two.
type heat []slot

// A slot counts the takes of one key.
type slot struct {
	votes atomic.Uint64
	hot   atomic.Pointer[hotKey] // the slot's key that is leased; nil if none
}

func newHeat(maxKeys int) heat { return make(heat, 1<<bits.Len(uint(maxKeys*slotsPerKey-1))) }

// slot returns the slot of a key, which the low bits of its hash select.
func (h heat) slot(hash uint64) *slot { return &h[hash&uint64(len(h)-1)] }

// vote counts a take of a key, and returns the key's votes in this epoch.
func (s *slot) vote(hash uint64, now time.Duration) (count int) {
	voter := hash>>32<<32 | uint64(uint16(now/heatEpoch))<<countBits
	for {
		old := s.votes.Load()
		votes := voted(old, voter)
		if s.votes.CompareAndSwap(old, votes) {
			if votes>>countBits != voter>>countBits {
				return 0
			}
			return int(votes & maxVotes)
		}
	}
}

// voted returns a slot's votes after one more by a voter, which is a key and an
// epoch in the bits of votes.
func voted(votes, voter uint64) uint64 {
	count := votes & maxVotes
	switch {
	case votes>>countBits == voter>>countBits:
		return voter | min(count+1, maxVotes)
	case uint16(votes>>countBits) != uint16(voter>>countBits) || count == 0:
		return voter | 1
	default:
		return votes - 1
	}
}

// A hotKey is a key that is leased.
type hotKey struct {
	key   step.Key
	limit step.Limit
	slot  *slot
	share int64 // the most units on lease

	stock     atomic.Pointer[stock]
	remaining atomic.Int64 // of the limit, by the latest answer from below
	asked     atomic.Int64 // units that takes have asked for, except units of blocks in stock
	pace      atomic.Int64 // units asked for in half of Hold
	refillAt  atomic.Int64 // since start: no fetch before

	mu      sync.Mutex    // guards the fields below, and changes of stock
	reset   bool          // the units on lease are forgotten below: none go back
	current step.Limit    // of the key now: units go back under it
	counted int64         // units that takes had asked for, when they were last counted
	at      time.Duration // when it was counted
}

// closed reports whether the key is no longer leased. Then a block that arrives
// goes back.
func (k *hotKey) closed() bool { return k.slot.hot.Load() != k }

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
	decision algorithms.Decision // of the take that charged it, without the receipt
	receipt  step.Receipt
}

// newBlock returns the block of a take, to be spent until lasts after the
// question.
func newBlock(it *item, asked, answered, lasts time.Duration) *block {
	b := &block{until: asked + lasts, turn: math.MaxInt64, answered: answered}
	b.decision, b.receipt = it.decision, it.decision.Receipt.Step()
	b.decision.Receipt = algorithms.Receipt{}
	b.size = b.receipt.Units
	b.left.Store(b.size)
	if it.Limit.Row.Refill != step.Continuously {
		end := asked + b.decision.ResetAfter // of the window: a block that was admitted fits into it
		if it.Limit.Row.Refill == step.Sliding {
			end -= time.Duration(it.Limit.Window) * time.Microsecond
		}
		b.until = min(b.until, end)
		if it.Limit.Row.Refill == step.AtTurns {
			b.turn = end
		}
	}
	return b
}

// spend takes units from the block, unless it has too few or has been closed. It
// returns how many are left. A negative number puts units back.
func (b *block) spend(units int64) (left int64, ok bool) {
	for {
		old := b.left.Load()
		if old < max(0, units) {
			return 0, false
		}
		if b.left.CompareAndSwap(old, old-units) {
			return old - units, true
		}
	}
}

// onLease returns the units that can be spent.
func (b *block) onLease() int64 { return max(0, b.left.Load()) }

// receiptOf returns the receipt of a part of the block.
func (b *block) receiptOf(units int64) step.Receipt {
	r := b.receipt
	r.Units = units
	return r
}

// A holding is the units that an item has spent from a block.
type holding struct {
	key   *hotKey
	block *block // nil: nothing was spent
	left  int64  // in the block
}

// measure returns how many units are asked for in a span of time, as a moving
// average. It counts again after a time of apart. It requires mu.
func (k *hotKey) measure(span, apart, now time.Duration) int64 {
	elapsed := now - k.at
	if elapsed < apart {
		return k.pace.Load()
	}
	asked := k.asked.Load()
	for _, b := range k.stock.Load() {
		asked += b.size - b.onLease()
	}
	recent, _ := step.MulDiv(max(0, asked-k.counted), int64(span), int64(elapsed))
	pace := (k.pace.Load() + recent) / 2
	k.pace.Store(pace)
	k.counted, k.at = asked, now
	return pace
}

// decide writes the decision of an item that has spent units: the decision of
// the block's own take, with its waits counted down. It omits the receipt if
// the call did not proceed.
func (h *holding) decide(it *item, now time.Duration, charged bool) {
	d := &it.decision
	*d = h.block.decision
	countDown(d, now-h.block.answered)
	d.Remaining = h.left
	if newer := h.key.stock.Load()[1]; newer != h.block {
		d.Remaining += newer.onLease()
	}
	if charged {
		d.Receipt = algorithms.ReceiptOf(h.block.receiptOf(it.Cost))
	} else {
		d.Remaining += it.Cost
	}
}

// countDown shortens the waits of a decision by the time since it was made.
func countDown(d *algorithms.Decision, elapsed time.Duration) {
	elapsed = max(0, elapsed.Truncate(time.Microsecond))
	for _, wait := range []*time.Duration{&d.RetryAfter, &d.ResetAfter, &d.UnitAfter} {
		if *wait != algorithms.Never {
			*wait = max(0, *wait-elapsed)
		}
	}
}
