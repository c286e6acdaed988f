package main

import (
	"context"
	"sync"
	"time"
)

const (
	tick = time.Millisecond
	// grace is what a call may take beyond its deadline.
	grace = 100 * time.Millisecond
)

// waits are how long calls took, and how long the machine let nobody run: a
// goroutine that sleeps for a moment, again and again, notices.
type waits struct {
	mu     sync.Mutex
	stalls []span // in order
	late   []span // calls to be judged
}

type span struct {
	from, to time.Time
	parts    int
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

// note notes a call of so many round trips one after the other.
func (w *waits) note(from, to time.Time, parts int) {
	d := to.Sub(from)
	if d <= deadline {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.late = append(w.late, span{from, to, parts})
}

// A lateness sums up what calls took.
type lateness struct {
	slowest, net    time.Duration // call, and that without stalls
	over            []span        // that took too long, without stalls
	stalls, longest time.Duration // all of them, and the longest
}

// judge judges the calls since the last judgement.
func (w *waits) judge() (l lateness) {
	time.Sleep(10 * tick) // for the stall that may be going on
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

// stalled returns for how much of a call nobody ran. It requires mu.
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

// stalledSince returns for how long nobody ran since then.
func (w *waits) stalledSince(from time.Time) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.stalled(span{from: from, to: time.Now()})
}
