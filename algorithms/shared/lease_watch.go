// The watch: a goroutine that ends leases and gives unspent units back.
//
// While no key is hot and nothing is to go back, the watch sleeps until it is
// woken. Otherwise it looks every quarter of Hold. Units always go back by the
// watch while it runs, so no caller waits for that.
//
// Closing. After closed is set under mu, nothing is added to keys, back and
// refills. So close first waits for the watch and for fetches under way, and then
// gives back everything itself.

package shared

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/algorithms/internal/step"
)

const (
	maxReturned     = 64          // returns in one call
	giveBackTimeout = time.Second // of all calls that give back at a time
)

var errNotReturned = errors.New("the limiter that lent the units did not answer")

// An unspent is the part of a block that goes back.
type unspent struct {
	key     step.Key
	limit   step.Limit
	receipt step.Receipt
}

// watch tends hot keys until the lease is closed.
func (l *lease) watch() {
	defer close(l.watched)
	timer := time.NewTimer(l.tendEvery)
	defer timer.Stop()
	for {
		select {
		case <-l.closing:
			return
		case <-l.wakeups:
		}
		for hot := true; hot; hot = l.tend(l.now()) {
			timer.Reset(l.tendEvery)
			select {
			case <-l.closing:
				return
			case <-timer.C:
			}
		}
	}
}

// tend closes blocks that have ended and keys that are no longer hot, gives back
// unspent units, and reports whether any key is hot.
func (l *lease) tend(now time.Duration) bool {
	l.mu.Lock()
	keys := slices.Clone(l.keys)
	l.mu.Unlock()
	var back []unspent
	hot := make([]*hotKey, 0, len(keys))
	for _, k := range keys {
		k.mu.Lock()
		back = append(back, l.closeExpired(k, now)...)
		if k.measure(l.options.Hold/2, l.tendEvery/2, now) < max(1, l.hotPace/2) {
			back = append(back, l.closeKey(k, &k.limit, now)...)
		}
		if !k.closed {
			hot = append(hot, k)
		}
		k.mu.Unlock()
	}
	l.mu.Lock()
	l.keys = append(hot, l.keys[len(keys):]...) // keys that became hot meanwhile
	back = append(back, l.back...)
	l.back = nil
	more := len(l.keys) > 0
	l.mu.Unlock()
	_ = l.sendBack(back) // reported already
	return more
}

// wake wakes the watch.
func (l *lease) wake() {
	select {
	case l.wakeups <- struct{}{}:
	default:
	}
}

// giveBack gives unspent units back, by the watch while it runs.
func (l *lease) giveBack(back []unspent) {
	if len(back) > 0 && !l.enqueue(back) {
		_ = l.sendBack(back) // reported already
	}
}

// enqueue leaves unspent units to the watch, and reports whether it still runs.
func (l *lease) enqueue(back []unspent) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed.Load() {
		return false
	}
	l.back = append(l.back, back...)
	l.wake()
	return true
}

// sendBack gives unspent units back, many in one call. All calls together take at
// most giveBackTimeout. It reports units that could not go back.
func (l *lease) sendBack(back []unspent) error {
	if len(back) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), giveBackTimeout)
	defer cancel()
	var errs []error
	for part := range slices.Chunk(back, maxReturned) {
		c := callOf(len(part))
		for i := range part {
			it := &c.items[i]
			it.Key, it.Limit, it.Op = part[i].key, part[i].limit, step.Return
			it.Receipt, it.Cost = part[i].receipt, part[i].receipt.Units
			_ = c.add(it) // returns of valid takes are valid
		}
		err := ownDeadline(l.next.allow(ctx, c))
		if err != nil {
			errs = append(errs, err)
		}
		l.countReturned(c, err)
		l.eased(c.items)
		c.free()
	}
	return errors.Join(errs...)
}

// countReturned counts the units of a call of returns, and reports those that are
// lost.
func (l *lease) countReturned(c *call, err error) {
	for i := range c.items {
		it := &c.items[i]
		if err == nil && it.decision.Source != algorithms.Undecided {
			l.counts.returned.Add(uint64(it.Cost))
			continue
		}
		l.counts.lost.Add(uint64(it.Cost))
		l.report.returnFailed(it.Key.Policy, cmp.Or(err, errNotReturned))
	}
}

// close ends all leases and gives unspent units back. Later calls pass through.
func (l *lease) close() error {
	l.once.Do(func() {
		l.mu.Lock()
		l.closed.Store(true)
		l.mu.Unlock()
		close(l.closing)
		<-l.watched
		l.refills.Wait()
		l.mu.Lock()
		keys, back := l.keys, l.back
		l.keys, l.back = nil, nil
		l.mu.Unlock()
		now := l.now()
		for _, k := range keys {
			k.mu.Lock()
			back = append(back, l.closeKey(k, &k.limit, now)...)
			k.mu.Unlock()
		}
		l.closeErr = l.sendBack(back)
	})
	return l.closeErr
}
