package algorithms

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"
)

// maxReturned bounds the returns in one call.
const maxReturned = 64

var errDropped = errors.New("who lent the units is out of reach")

// watch looks after what is hot, on lease, or to go back, until the lease is
// closed. While there is nothing, it sleeps.
func (l *lease) watch() {
	defer close(l.watched)
	timer := time.NewTimer(l.step)
	defer timer.Stop()
	for {
		select {
		case <-l.closing:
			return
		case <-l.wake:
		}
		for hot := true; hot; hot = l.look(l.now()) {
			timer.Reset(l.step)
			select {
			case <-l.closing:
				return
			case <-timer.C:
			}
		}
	}
}

// look ends leases that are past or of keys no longer hot, and reports whether
// any key is hot.
func (l *lease) look(now time.Duration) bool {
	l.mu.Lock()
	keys := slices.Clone(l.keys)
	l.mu.Unlock()
	var back []Check
	hot := make([]*hotKey, 0, len(keys))
	for _, k := range keys {
		k.mu.Lock()
		back = append(back, l.expire(k, now)...)
		if k.measure(l.options.Hold/2, l.step/2, now) < max(1, l.hotPace/2) {
			back = append(back, l.finish(k, k.limit, now)...)
		}
		if !k.gone {
			hot = append(hot, k)
		}
		k.mu.Unlock()
	}
	l.mu.Lock()
	l.keys = append(hot, l.keys[len(keys):]...) // with those that are new
	back = append(back, l.back...)
	l.back = nil
	more := len(l.keys) > 0
	l.mu.Unlock()
	_ = l.send(back) // which is observed
	return more
}

// expire closes the blocks of a key that are past, and returns what is to go
// back. It requires the key's mu.
func (l *lease) expire(k *hotKey, now time.Duration) []Check {
	s, past := *k.stock.Load(), stock{}
	for i, b := range s {
		if b != nil && now >= b.until {
			s[i], past[i] = nil, b
		}
	}
	if past == (stock{}) {
		return nil
	}
	k.stock.Store(&s)
	return l.retire(k, past, now)
}

// queue has returns made by the watch, and reports whether it still runs.
func (l *lease) queue(back []Check) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed.Load() {
		return false
	}
	l.back = append(l.back, back...)
	l.call()
	return true
}

// giveBack makes returns, or has the watch make them while it runs.
func (l *lease) giveBack(back []Check) {
	if len(back) > 0 && !l.queue(back) {
		_ = l.send(back) // which is observed
	}
}

// call wakes the watch.
func (l *lease) call() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// send makes returns, in few calls that together take returnTimeout at most.
func (l *lease) send(back []Check) error {
	ctx, cancel := context.WithTimeout(context.Background(), returnTimeout)
	defer cancel()
	var errs []error
	for part := range slices.Chunk(back, maxReturned) {
		err := ownDeadline(l.next.Allow(ctx, part))
		if err != nil {
			errs = append(errs, err)
		}
		for i := range part {
			c := &part[i]
			if err == nil && c.Decision.Source != Undecided {
				l.counts.returned.Add(uint64(c.Cost))
				continue
			}
			l.counts.lost.Add(uint64(c.Cost))
			l.observe(Event{Kind: EventReturnFailed, Policy: c.Policy, Err: cmp.Or(err, errDropped)})
		}
		l.eased(part)
	}
	return errors.Join(errs...)
}

// close gives back all that is on lease. Later calls pass through.
func (l *lease) close() error {
	l.once.Do(func() {
		l.mu.Lock()
		l.closed.Store(true)
		l.mu.Unlock()
		close(l.closing)
		<-l.watched
		l.refills.Wait()
		l.mu.Lock() // which closed is under, so nobody adds to what it guards
		keys, back := l.keys, l.back
		l.keys, l.back = nil, nil
		l.mu.Unlock()
		now := l.now()
		for _, k := range keys {
			k.mu.Lock()
			back = append(back, l.finish(k, k.limit, now)...)
			k.mu.Unlock()
		}
		l.err = l.send(back)
	})
	return l.err
}
