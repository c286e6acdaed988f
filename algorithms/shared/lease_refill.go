package algorithms

import (
	"context"
	"time"
)

// refillTimeout bounds asking for a block. One that comes too late goes back;
// one that is given up stays charged.
const refillTimeout = time.Second

// refill starts to take a block for a key that is low, unless one is under way.
func (l *lease) refill(k *hotKey, cost int64, now time.Duration) {
	at := k.refillAt.Load()
	if int64(now) < at || !k.low(now) {
		return
	}
	units := k.blockSize(cost)
	if units == 0 || !k.refillAt.CompareAndSwap(at, busy) {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.closed.Load() {
		l.refills.Go(func() { l.take(k, units) })
	}
}

// take takes a block. If there is none to be had, it is not asked for again
// until Hold has passed.
func (l *lease) take(k *hotKey, units int64) {
	ctx, cancel := context.WithTimeout(context.Background(), refillTimeout)
	defer cancel()
	checks := []Check{{Policy: k.policy, Key: k.key, Limit: k.limit, Cost: units, Exact: true, Fail: FailClosed}}
	d := &checks[0].Decision
	asked := l.now()
	err := l.next.Allow(ctx, checks)
	now := l.now()
	if err != nil || !d.Allowed || d.Receipt.units == 0 {
		k.refillAt.Store(int64(now + l.options.Hold))
		return
	}
	l.counts.blocks.Add(1)
	l.counts.leased.Add(uint64(units))
	// The watch closes what is past at its next look, one step later.
	b := newBlock(&checks[0], asked, now, l.options.Hold-l.step)
	if d.Source != Shared {
		b.until = 0 // only what all instances share is leased: it goes back
	}
	l.giveBack(l.stock(k, b, now))
	if now >= b.until {
		k.refillAt.Store(int64(now + l.options.Hold))
		return
	}
	k.remaining.Store(d.Remaining)
	k.refillAt.Store(int64(now))
	l.eased(checks)
}

// stock adds a block to those of a key, and returns what is to go back: what is
// left of the oldest, or the block, if the key is no longer leased.
func (l *lease) stock(k *hotKey, b *block, now time.Duration) []Check {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.gone {
		return l.retire(k, stock{b}, now)
	}
	s := *k.stock.Load()
	k.stock.Store(&stock{s[1], b})
	return l.retire(k, stock{s[0]}, now)
}

// retire closes blocks, and returns what is to go back of them. It requires the
// key's mu.
func (l *lease) retire(k *hotKey, blocks stock, now time.Duration) (back []Check) {
	for _, b := range blocks {
		if b == nil {
			continue
		}
		left := b.close()
		k.spent += b.units - left
		l.counts.spent.Add(b.units - left)
		back = l.left(k, back, b, left, now)
	}
	return back
}

// left appends the return of what is left of a closed block, if it is worth
// anything. It requires the key's mu.
func (l *lease) left(k *hotKey, back []Check, b *block, units int64, now time.Duration) []Check {
	switch {
	case units == 0:
		return back
	case k.reset || now >= b.turn:
		l.counts.lost.Add(uint64(units))
		return back
	}
	return append(back, Check{
		Policy: k.policy, Key: k.key, Limit: k.current, Op: Return, Cost: units,
		Decision: Decision{Receipt: b.receipt(units)},
	})
}
