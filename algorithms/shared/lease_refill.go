// How blocks are fetched and closed, and how their unspent units go back.
//
// Takes that find a key low start the fetch of its next block. One of them wins
// refillAt and sets it to busy, so a key has one fetch under way. After a fetch
// that brings nothing, the next one waits for Hold: trouble below must not be
// answered with more calls.
//
// The watch is a goroutine that ends leases and gives unspent units back, so no
// caller waits for that. While no key is hot and no unit is to go back, the
// watch sleeps until it is woken. Otherwise it looks every quarter of Hold.
//
// The life of a unit, with Hold = 100 ms: charged below at 0 ms; spent here
// until 75 ms, or else closed by the watch at the latest at 100 ms and returned
// below.
//
// Closing. After closed is set, nothing is added to keys and refills. So the
// end first waits for the watch and for fetches under way, and then gives back
// everything itself. A call that overlaps the end may still find that its units
// cannot be put back. Once ended is set, such a call gives them back itself.
//
// Locks. A hotKey's mu is locked before the lease's.

package shared

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/algorithms/internal/step"
)

const (
	// fetchTimeout bounds the fetch of a block. A block that comes too late to
	// be spent goes back. A block whose fetch was given up stays charged.
	fetchTimeout = time.Second

	maxReturned     = 64          // returns in one call
	giveBackTimeout = time.Second // of all calls that give back at a time
)

var errNotReturned = fmt.Errorf("units of leases could not go back: %w", algorithms.ErrUnavailable)

// refill starts the fetch of a block for a key whose newer block is half spent
// or has ended. By then the older block is spent, too. It fetches no block that
// is good for too few takes of this cost.
func (l *lease) refill(k *hotKey, cost int64, now time.Duration) {
	at, s := k.refillAt.Load(), k.stock.Load()
	older, newer := s[0], s[1]
	if int64(now) < at || now < newer.until && newer.left.Load() > newer.size/2 {
		return
	}
	rest := max(0, k.remaining.Load())
	tapered, _ := step.MulDiv(rest, rest, taper*k.limit.Burst)
	units := min(k.pace.Load(), k.share-older.onLease()-newer.onLease(), tapered)
	if units/minTakes < cost || !k.refillAt.CompareAndSwap(at, busy) {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.closed {
		l.refills.Go(func() { l.fetch(k, units) })
	}
}

// fetch asks for a block, and adds it to the key's stock.
func (l *lease) fetch(k *hotKey, units int64) {
	ctx, cancel := context.WithTimeout(context.Background(), fetchTimeout)
	defer cancel()
	c := callOf(1)
	defer c.free()
	it := &c.items[0]
	it.Key, it.Limit, it.Cost = k.key, k.limit, units
	it.exact, it.fail = true, algorithms.FailClosed
	_ = c.add(it) // a single take is valid
	asked := l.now()
	err := l.next.allow(ctx, c)
	now := l.now()
	next := now + l.options.Hold
	if d := &it.decision; err == nil && d.Allowed && d.Receipt.Units() > 0 {
		l.counts.blocks.Add(1)
		l.counts.leased.Add(uint64(units))
		b := newBlock(it, asked, now, l.options.Hold-l.tendEvery)
		if d.Source != algorithms.Shared {
			b.until = 0 // only units that all instances share are leased: this block goes back
		}
		l.addBlock(k, b, now)
		if now < b.until {
			next = now
			k.remaining.Store(d.Remaining)
			l.eased(c.items)
		}
	}
	k.refillAt.Store(int64(next))
}

// addBlock adds a block to the stock of a key, in the place of the oldest. The
// rest of the oldest goes back, and so does the block if the key is no longer
// leased.
func (l *lease) addBlock(k *hotKey, b *block, now time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	l.restock(k, stock{k.stock.Load()[1], b}, now)
	if k.closed() {
		l.restock(k, empty, now)
	}
}

// endLease ends the lease of a key. Unspent units go back under the key's
// current limit, unless the key was reset.
func (l *lease) endLease(k *hotKey, limit *step.Limit, reset bool, now time.Duration) {
	k.mu.Lock()
	k.reset = k.reset || reset
	if k.slot.hot.CompareAndSwap(k, nil) {
		k.current = *limit
		l.restock(k, empty, now)
	}
	k.mu.Unlock()
	l.sendLate()
}

// closeExpired closes the blocks that can no longer be spent. It requires the
// key's mu.
func (l *lease) closeExpired(k *hotKey, now time.Duration) {
	old := k.stock.Load()
	s := *old
	for i, b := range s {
		if now >= b.until {
			s[i] = none
		}
	}
	if s != *old {
		l.restock(k, s, now)
	}
}

// restock replaces the stock of a key, and closes the blocks that are no longer
// in it. It requires the key's mu.
func (l *lease) restock(k *hotKey, s stock, now time.Duration) {
	for _, b := range k.stock.Swap(&s) {
		if slices.Contains(s[:], b) {
			continue
		}
		left := max(0, b.left.Swap(-1))
		k.asked.Add(b.size - left)
		l.counts.spent.Add(b.size - left)
		l.giveBack(k, b, left, now)
	}
}

// giveBack leaves unspent units of a closed block to the watch, or counts them
// as lost if they are worth nothing. It requires the key's mu.
func (l *lease) giveBack(k *hotKey, b *block, units int64, now time.Duration) {
	switch {
	case units == 0:
		return
	case k.reset || now >= b.turn:
		l.counts.lost.Add(uint64(units))
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.back = append(l.back, step.Item{
		Key: k.key, Limit: k.current, Op: step.Return, Cost: units, Receipt: b.receiptOf(units),
	})
	l.wake()
}

// unspend puts back the units of a holding. If its block is closed, they go
// back below.
func (l *lease) unspend(h *holding, units int64) {
	if _, ok := h.block.spend(-units); ok {
		return
	}
	h.key.mu.Lock()
	l.giveBack(h.key, h.block, units, l.now())
	h.key.mu.Unlock()
	l.counts.spent.Add(-units)
	l.sendLate()
}

// sendLate gives back units that were left to the watch after it had ended.
func (l *lease) sendLate() {
	l.mu.Lock()
	var back []step.Item
	if l.ended {
		back, l.back = l.back, nil
	}
	l.mu.Unlock()
	if back != nil {
		_ = l.sendBack(back) // reported already
	}
}

// watch tends hot keys until the lease is closed.
func (l *lease) watch() {
	for {
		select {
		case <-l.closing:
			return
		case <-l.alarm.C:
			l.tend(l.now())
		}
	}
}

// wake makes the watch look after a quarter of Hold, unless it is awake. It
// requires mu.
func (l *lease) wake() {
	if !l.awake {
		l.awake = true
		l.alarm.Reset(l.tendEvery)
	}
}

// tend closes blocks that have ended and keys that are no longer hot, and gives
// back unspent units.
func (l *lease) tend(now time.Duration) {
	l.mu.Lock()
	keys := slices.Clone(l.keys)
	l.mu.Unlock()
	for _, k := range keys {
		k.mu.Lock()
		l.closeExpired(k, now)
		pace := k.measure(l.options.Hold/2, l.tendEvery/2, now)
		k.mu.Unlock()
		if pace < max(1, l.hotPace/2) {
			l.endLease(k, &k.limit, false, now)
		}
	}
	l.mu.Lock()
	l.keys = slices.DeleteFunc(l.keys, (*hotKey).closed)
	back := l.back
	l.back = nil
	l.mu.Unlock()
	_ = l.sendBack(back) // reported already
	l.mu.Lock()
	defer l.mu.Unlock()
	l.awake = false
	if len(l.keys) > 0 || len(l.back) > 0 {
		l.wake()
	}
}

// sendBack gives unspent units back, many in one call. All calls together take at
// most giveBackTimeout. It reports units that could not go back.
func (l *lease) sendBack(back []step.Item) error {
	ctx, cancel := context.WithTimeout(context.Background(), giveBackTimeout)
	defer cancel()
	var errs []error
	for part := range slices.Chunk(back, maxReturned) {
		c := callOf(len(part))
		for i := range part {
			c.items[i].Item = part[i]
			_ = c.add(&c.items[i]) // returns of valid takes are valid
		}
		errs = append(errs, l.countReturned(c, ownDeadline(l.next.allow(ctx, c))))
		l.eased(c.items)
		c.free()
	}
	return errors.Join(errs...)
}

// countReturned counts the units of a call of returns, and reports lost units. The
// error is nil if none is lost.
func (l *lease) countReturned(c *call, err error) (lost error) {
	for i := range c.items {
		it := &c.items[i]
		if err == nil && it.decision.Source != algorithms.Undecided {
			l.counts.returned.Add(uint64(it.Cost))
			continue
		}
		l.counts.lost.Add(uint64(it.Cost))
		lost = cmp.Or(err, errNotReturned)
		l.report.returnFailed(it.Key.Policy, lost)
	}
	return lost
}

// end ends all leases and gives unspent units back.
func (l *lease) end() error {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.closing <- struct{}{}
	l.refills.Wait()
	now := l.now()
	for _, k := range l.keys { // nothing changes them any more
		l.endLease(k, &k.limit, false, now)
	}
	l.mu.Lock()
	back := l.back
	l.keys, l.back, l.ended = nil, nil, true
	l.mu.Unlock()
	return l.sendBack(back)
}
