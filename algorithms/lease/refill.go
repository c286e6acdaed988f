// How blocks are fetched and closed, and how their unspent units go back.
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
// taken one by one where every process finds them, so few takes are denied
// because of units that another process holds and does not spend.
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
// One fetch at a time. Takes that find a key low start the fetch of its next
// block. One of them wins refillAt and sets it to busy. After a fetch that brings
// nothing, the next one waits for Hold: trouble in the wrapped limiter must not
// be answered with more calls.
//
// tend ends leases and gives unspent units back, so no caller waits for that.
// While a key is hot or a unit is to go back, an alarm calls it every quarter of
// Hold.
//
// The life of a unit, with Hold = 100 ms: charged in the wrapped limiter at 0 ms;
// spent here until 75 ms. Otherwise tend closes its block at the latest at 100
// ms, and returns it to the wrapped limiter.
//
// Closing. After closed is set, nothing is added to keys and work. So end first
// waits for tend and for fetches under way, and then gives back everything
// itself. A call that overlaps Close may still find that its units cannot be put
// back. Once ended is set, such a call gives them back itself.
//
// Locks. A hotKey's mu is locked before the Limiter's.

package lease

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/algorithms/internal/step"
)

const (
	minTakes    = 4             // fewer takes are not worth a block
	taper       = 4             // see above
	busy        = math.MaxInt64 // the refillAt of a key for which a block is being fetched
	maxReturned = 64            // returns in one call
	timeout     = time.Second   // of a fetch, and of all calls that give back at a time
)

// refill starts the fetch of a block for a key whose newer block is half spent
// or has ended. By then the older block is spent, too. It fetches no block that
// is good for too few takes of this cost.
func (l *Limiter) refill(k *hotKey, cost int64, now time.Duration) {
	at, s := k.refillAt.Load(), k.stock.Load()
	older, newer := s[0], s[1]
	if int64(now) < at || now < newer.until && newer.left.Load() > newer.size/2 {
		return
	}
	rest, burst := max(0, k.remaining.Load()), k.limit.Burst()
	tapered, _ := step.MulDiv(rest, rest, taper*burst)
	share := burst*int64(l.options.Share)/100 - older.onLease() - newer.onLease()
	units := min(k.pace.Load(), share, tapered)
	if units/minTakes < cost || !k.refillAt.CompareAndSwap(at, busy) {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.closed {
		l.work.Go(func() { l.fetch(k, units) })
	}
}

// fetch asks for a block, and adds it to the key's stock in the place of the
// oldest. A block that must not be spent goes back.
func (l *Limiter) fetch(k *hotKey, units int64) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	c := []algorithms.Check{{
		Policy: k.key.Policy, Key: k.key.Text, Limit: k.limit, Cost: units, Fail: algorithms.FailClosed, Exact: true,
	}}
	asked := l.now()
	err := l.wrapped.Allow(ctx, c)
	now := l.now()
	b := newBlock(&c[0], err, asked, now, l.options.Hold*3/4)
	l.mu.Lock()
	l.counts.Blocks += uint64(min(1, b.size))
	l.counts.Leased += uint64(b.size)
	l.mu.Unlock()
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.closed() || now >= b.until {
		l.closeBlock(k, b, now)
		k.refillAt.Store(int64(now + l.options.Hold))
		return
	}
	l.restock(k, stock{k.stock.Load()[1], b}, now)
	k.remaining.Store(b.decision.Remaining)
	k.refillAt.Store(int64(now))
}

// endLease ends the lease of a key. Unspent units go back under the key's
// current limit, unless the key was reset.
func (l *Limiter) endLease(k *hotKey, limit algorithms.Limit, reset bool, now time.Duration) {
	k.mu.Lock()
	k.reset = k.reset || reset
	if k.slot.hot.CompareAndSwap(k, nil) {
		k.current = limit
		l.restock(k, empty, now)
	}
	k.mu.Unlock()
	l.sendLate()
}

// restock replaces the stock of a key by the blocks of s that have not ended, and
// closes the others. It requires the key's mu.
func (l *Limiter) restock(k *hotKey, s stock, now time.Duration) {
	for i, b := range s {
		if now >= b.until {
			s[i] = none
		}
	}
	for _, b := range k.stock.Swap(&s) {
		if !slices.Contains(s[:], b) {
			l.closeBlock(k, b, now)
		}
	}
}

// closeBlock ends the spending of a block. It requires the key's mu.
func (l *Limiter) closeBlock(k *hotKey, b *block, now time.Duration) {
	left := max(0, b.left.Swap(-1))
	k.asked.Add(b.size - left)
	l.giveBack(k, b, b.size-left, left, now)
}

// giveBack counts the spent units of a closed block. It leaves its unspent units
// to tend, or counts them as lost if they are worth nothing. It requires the
// key's mu.
func (l *Limiter) giveBack(k *hotKey, b *block, spent, unspent int64, now time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.counts.Spent += uint64(spent)
	switch {
	case unspent == 0:
	case k.reset || now >= b.turn:
		l.counts.Lost += uint64(unspent)
	default:
		l.back = append(l.back, algorithms.Check{
			Policy: k.key.Policy, Key: k.key.Text, Limit: k.current, Op: algorithms.Return, Cost: unspent,
			Decision: algorithms.Decision{Receipt: b.receiptOf(unspent)},
		})
		l.wake()
	}
}

// unspend puts back the units of a holding whose call does not proceed. If its
// block is closed, they go back to the wrapped limiter.
func (l *Limiter) unspend(c *algorithms.Check, h *holding) {
	c.Decision.Remaining, c.Decision.Receipt = c.Decision.Remaining+c.Cost, algorithms.Receipt{}
	if _, ok := h.block.spend(-c.Cost, 0); ok {
		return
	}
	h.key.mu.Lock()
	l.giveBack(h.key, h.block, -c.Cost, c.Cost, l.now())
	h.key.mu.Unlock()
	l.sendLate()
}

// sendLate gives back units that were left to tend after Close.
func (l *Limiter) sendLate() {
	if l.ended.Load() {
		_ = l.sendBack() // counted as lost
	}
}

// wake sets the alarm, unless tend will look anyway. It requires mu.
func (l *Limiter) wake() {
	if l.alarm == nil && !l.closed {
		l.work.Add(1)
		l.alarm = time.AfterFunc(l.options.Hold/4, func() {
			defer l.work.Done()
			_ = l.tend(false) // counted as lost
		})
	}
}

// tend closes blocks that have ended and keys that are no longer hot, and gives
// back unspent units. The last time, it closes all keys.
func (l *Limiter) tend(last bool) error {
	now := l.now()
	l.mu.Lock()
	keys := slices.Clone(l.keys)
	l.mu.Unlock()
	for _, k := range keys {
		k.mu.Lock()
		l.restock(k, *k.stock.Load(), now)
		pace := k.measure(l.options.Hold/2, now)
		k.mu.Unlock()
		if last || pace < max(1, l.options.hotPace()/2) {
			l.endLease(k, k.limit, false, now)
		}
	}
	l.mu.Lock()
	l.keys = slices.DeleteFunc(l.keys, (*hotKey).closed)
	l.mu.Unlock()
	l.ended.Store(last)
	err := l.sendBack()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.alarm = nil; len(l.keys)+len(l.back) > 0 {
		l.wake()
	}
	return err
}

// sendBack gives unspent units back, many in one call. All calls together take at
// most the timeout. The error names some units that could not go back, and why.
func (l *Limiter) sendBack() (err error) {
	l.mu.Lock()
	back := l.back
	l.back = nil
	l.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	for part := range slices.Chunk(back, maxReturned) {
		failed := l.wrapped.Allow(ctx, part)
		l.mu.Lock()
		for i := range part {
			c := &part[i]
			if failed == nil && c.Decision.Source != algorithms.Undecided {
				l.counts.Returned += uint64(c.Cost)
				continue
			}
			l.counts.Lost += uint64(c.Cost)
			err = fmt.Errorf("lease: units could not go back, such as %d of policy %s: %w", c.Cost, c.Policy, cmp.Or(failed, algorithms.ErrUnavailable))
		}
		l.mu.Unlock()
	}
	return err
}

// Close gives back unspent units, and ends all goroutines, within two seconds.
// Close the wrapped limiter after it. The error says that units could not go
// back; they count as lost. Later calls pass to the wrapped limiter. You may
// call Close repeatedly.
func (l *Limiter) Close() error { return l.close() }

// end ends all leases and gives unspent units back.
func (l *Limiter) end() error {
	l.mu.Lock()
	l.closed = true
	if l.alarm != nil && l.alarm.Stop() {
		l.work.Done()
	}
	l.mu.Unlock()
	l.work.Wait()
	return l.tend(true)
}
