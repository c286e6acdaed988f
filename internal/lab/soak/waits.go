// Promise 3: how long calls take, without the stalls of the machine.
//
// On a busy machine the process may not run for many milliseconds, and no limiter
// can answer then. A goroutine that sleeps for 1 ms at a time detects that: if it
// wakes up more than 2 ms after the last time, the time beyond the first
// millisecond was a stall.

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
	late   []span
}

type span struct {
	from, to time.Time
	slots    int // of a call: its round trips, one after the other
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

// note records a call.
func (w *waits) note(from, to time.Time, slots int) {
	if to.Sub(from) > deadline {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.late = append(w.late, span{from, to, slots})
	}
}

// net returns the length of a time without the stalls that overlap it.
func (w *waits) net(s span) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	net := s.length()
	for _, stall := range w.stalls {
		net -= max(0, min(stall.length(), s.length(), stall.to.Sub(s.from), s.to.Sub(stall.from))) // that both share
	}
	return net
}

// judge tells broken of the calls that took too long even without stalls. It returns the longest call, with and without
// stalls. Call it when no caller is left.
func (w *waits) judge(broken func(format string, args ...any)) (slowest, slowestNet time.Duration) {
	for _, call := range w.late {
		net, most := w.net(call), time.Duration(call.slots)*deadline+grace
		slowest, slowestNet = max(slowest, call.length()), max(slowestNet, net)
		if net > most {
			broken("a call of %d slots took %v, and %v without the machine's stalls; want at most %v", call.slots, call.length(), net, most)
		}
	}
	return slowest, slowestNet
}
