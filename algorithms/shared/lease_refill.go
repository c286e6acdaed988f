// How blocks are fetched, and how they are closed.
//
// Takes that find a key low start the fetch of its next block. One of them wins
// refillAt and sets it to busy, so a key has one fetch under way. A fetch that
// brings nothing is not repeated until Hold has passed: trouble below must not be
// answered with more calls.

package shared

import (
	"context"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/algorithms/internal/step"
)

// fetchTimeout bounds the fetch of a block. A block that comes too late to be
// spent goes back; one whose fetch is given up stays charged.
const fetchTimeout = time.Second

// refill starts the fetch of a block for a key that is low.
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
		l.refills.Go(func() { l.fetch(k, units) })
	}
}

// fetch asks for a block, and adds it to the key's.
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
	d := &it.decision
	if err != nil || !d.Allowed || d.Receipt.Units() == 0 {
		k.refillAt.Store(int64(now + l.options.Hold))
		return
	}
	l.counts.blocks.Add(1)
	l.counts.leased.Add(uint64(units))
	b := newBlock(it, asked, now, l.options.Hold-l.tendEvery)
	if d.Source != algorithms.Shared {
		b.until = 0 // only what all instances share is leased: this block goes back
	}
	l.giveBack(l.addBlock(k, b, now))
	if now >= b.until {
		k.refillAt.Store(int64(now + l.options.Hold))
		return
	}
	k.remaining.Store(d.Remaining)
	k.refillAt.Store(int64(now))
	l.eased(c.items)
}

// addBlock adds a block to those of a key, in the place of the oldest. It returns
// what goes back: the rest of the oldest, or the block if the key is no longer
// leased.
func (l *lease) addBlock(k *hotKey, b *block, now time.Duration) []unspent {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.closed {
		return l.closeBlocks(k, stock{b}, now)
	}
	s := *k.stock.Load()
	k.stock.Store(&stock{s[1], b})
	return l.closeBlocks(k, stock{s[0]}, now)
}

// closeKey ends the lease of a key, and returns what goes back under the limit
// that it has now. It requires the key's mu.
func (l *lease) closeKey(k *hotKey, limit *step.Limit, now time.Duration) []unspent {
	if k.closed {
		return nil
	}
	k.slot.hot.CompareAndSwap(k, nil)
	k.closed, k.current = true, *limit
	return l.closeBlocks(k, *k.stock.Swap(new(stock)), now)
}

// closeExpired closes the blocks that can no longer be spent, and returns what
// goes back. It requires the key's mu.
func (l *lease) closeExpired(k *hotKey, now time.Duration) []unspent {
	s, expired := *k.stock.Load(), stock{}
	for i, b := range s {
		if b != nil && now >= b.until {
			s[i], expired[i] = nil, b
		}
	}
	if expired == (stock{}) {
		return nil
	}
	k.stock.Store(&s)
	return l.closeBlocks(k, expired, now)
}

// closeBlocks closes blocks of a key, and returns what goes back. It requires the
// key's mu.
func (l *lease) closeBlocks(k *hotKey, blocks stock, now time.Duration) (back []unspent) {
	for _, b := range blocks {
		if b == nil {
			continue
		}
		left := b.close()
		k.spent += b.size - left
		l.counts.spent.Add(b.size - left)
		back = l.appendUnspent(back, k, b, left, now)
	}
	return back
}

// unspendClosed gives back units that were spent from a block which has been
// closed meanwhile.
func (l *lease) unspendClosed(k *hotKey, b *block, units int64) {
	k.mu.Lock()
	back := l.appendUnspent(nil, k, b, units, l.now())
	k.mu.Unlock()
	l.counts.spent.Add(-units)
	l.giveBack(back)
}

// appendUnspent appends unspent units of a closed block, or counts them as lost if
// they are worth nothing. It requires the key's mu.
func (l *lease) appendUnspent(back []unspent, k *hotKey, b *block, units int64, now time.Duration) []unspent {
	switch {
	case units == 0:
		return back
	case k.reset || now >= b.turn:
		l.counts.lost.Add(uint64(units))
		return back
	}
	return append(back, unspent{key: k.key, limit: k.current, receipt: b.receiptOf(units)})
}
