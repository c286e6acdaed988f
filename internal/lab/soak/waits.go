// Promise 3: how long calls take, without the stalls of the machine.
//
// On a busy machine the process may not run for many milliseconds, and no limiter
// can answer then. A goroutine that sleeps for 1 ms at a time detects that: if it
// wakes up more than 2 ms after the last time, the time beyond the first
// millisecond was a stall. The net time of a call is its length without the stalls
// that overlap it. For example, a call takes from 50 to 310 ms. It overlaps a stall
// from 0 to 60 ms and another one from 100 to 300 ms. Its length is 260 ms, and its
// net time 260 - 10 - 200 = 50 ms.

package main

import (
	"context"
	"sync"
	"time"
)

const (
	tick = time.Millisecond
	// grace is how much longer than its deadlines a call may take.
	grace = 100 * time.Millisecond
)

// waits holds the calls that took longer than a deadline, and the stalls.
type waits struct {
	mu     sync.Mutex
	stalls []span // in order
	late   []span // calls since the last judgement
}

type span struct {
	from, to time.Time
	parts    int // of a call: its round trips, one after the other
}

func (s span) length() time.Duration { return s.to.Sub(s.from) }

// watch notes stalls until ctx ends.
func (w *waits) watch(ctx context.Context) {
	for last := time.Now(); ctx.Err() == nil; {
		time.Sleep(tick)
		now := time.Now()
		if now.Sub(last) > 2*tick {
			w.mu.Lock()
			w.stalls = append(w.stalls, span{from: last.Add(tick), to: now})
			w.mu.Unlock()
		}
		last = now
	}
}

// note records a call of so many round trips, one after the other.
func (w *waits) note(from, to time.Time, parts int) {
	d := to.Sub(from)
	if d <= deadline {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.late = append(w.late, span{from, to, parts})
}

// A lateness sums up the calls and stalls between two judgements.
type lateness struct {
	slowest, net    time.Duration // the longest call, with and without stalls
	over            []span        // calls that took too long even without stalls
	stalls, longest time.Duration // the sum of all stalls, and the longest
}

// judge judges the calls since the last judgement.
func (w *waits) judge() (l lateness) {
	time.Sleep(10 * tick) // so that a present stall is recorded
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range w.stalls {
		l.stalls += s.length()
		l.longest = max(l.longest, s.length())
	}
	for _, call := range w.late {
		net := call.length() - w.stalled(call)
		l.slowest, l.net = max(l.slowest, call.length()), max(l.net, net)
		if net > time.Duration(call.parts)*deadline+grace {
			l.over = append(l.over, call)
		}
	}
	w.stalls, w.late = nil, nil
	return l
}

// stalled returns how much of a call was stalled. It requires mu.
func (w *waits) stalled(call span) (d time.Duration) {
	for _, s := range w.stalls {
		from, to := s.from, s.to
		if from.Before(call.from) {
			from = call.from
		}
		if to.After(call.to) {
			to = call.to
		}
		d += max(0, to.Sub(from))
	}
	return d
}

// stalledBetween returns how much of a time was stalled.
func (w *waits) stalledBetween(from, to time.Time) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.stalled(span{from: from, to: to})
}
