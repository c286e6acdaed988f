// The counts of an act, and whether they keep the promises.
//
// Promise 5. An open circuit probes every second, and its client may need a
// second to dial. So it closes at most three seconds after the last trouble.

package main

import (
	"slices"
	"sync"
	"time"
)

const (
	steadyPause  = time.Second // between two probes (algorithms/shared/internal/circuit)
	closesWithin = steadyPause + 2*time.Second
	lookEvery    = 10 * tick
)

// recovery waits until no circuit is open, and returns how long that took. It gives
// up after three times as long as it may take.
func recovery(open func() int) (took time.Duration, closed bool) {
	begin := time.Now()
	for ; open() > 0; time.Sleep(lookEvery) {
		if took = time.Since(begin); took > 3*closesWithin {
			return took, false
		}
	}
	return time.Since(begin), true
}

// awaitClosed checks promise 5. It waits until the circuits of each instance have
// been closed once, and returns how long that took.
func (l *leg) awaitClosed() (slowest time.Duration) {
	end := time.Now()
	took := make([]time.Duration, len(l.instances))
	var all sync.WaitGroup
	for i, in := range l.instances {
		all.Go(func() { // at once, because a circuit may open again meanwhile
			var closed bool
			if took[i], closed = recovery(func() int { return in.limiter.Stats().Fallback.Open }); !closed {
				l.broken("a circuit is open %v after the last trouble", took[i])
				return
			}
			if net := took[i] - l.waits.stalledBetween(end, end.Add(took[i])); net > closesWithin {
				l.broken("a circuit took %v to close after the last trouble, and %v without the machine's stalls; want %v", took[i], net, closesWithin)
			}
		})
	}
	all.Wait()
	return slices.Max(took)
}

// awaitTold waits until the instances have reported everything to Redis. Call it
// when no caller is left.
func (l *leg) awaitTold() {
	const within = 2 * closesWithin
	for begin := time.Now(); time.Since(begin) < within; time.Sleep(lookEvery) {
		if t := l.tally(); t.owed == 0 && t.open == 0 {
			return
		}
	}
	l.broken("%d keys are not handed back and %d circuits are open %v after the last call", l.tally().owed, l.tally().open, within)
}

func (l *leg) judgeWaits() lateness {
	waits := l.waits.judge()
	for _, call := range waits.over {
		l.broken("a call of %d slots took %v, more than %v even without the machine's stalls",
			call.parts, call.length(), time.Duration(call.parts)*deadline+grace)
	}
	return waits
}

// judgeBooks checks promises 1 and 2.
func (l *leg) judgeBooks(b *books, r *row) {
	instances := int64(len(l.instances))
	for _, a := range b.used() {
		for _, c := range a.claims(r.losses, instances) {
			if c.got > c.most {
				l.broken("admitted too much: %s %q of %v, %v: %v, in %.1f s with %d losses of data", a.policy, a.key, a.limit, a.fail,
					c, float64(a.last.Load()-a.first.Load())/1e6, r.losses)
			}
			if c.exceeds(r.fullest) {
				r.fullest = c
			}
		}
		c := a.together(r.losses, instances)
		if c.got > c.most {
			r.beyond++
		}
		if c.exceeds(r.together) {
			r.together = c
		}
	}
}

// A tally is the sum of the limiters' statistics.
type tally struct {
	shared, local, passed, refused, trips, handedBack, lost uint64
	owed, open                                              int
}

func (l *leg) tally() (t tally) {
	for _, in := range l.instances {
		s := in.limiter.Stats()
		t.shared += s.Redis.Checks
		t.local += s.Fallback.Local
		t.passed += s.Fallback.Passed
		t.refused += s.Fallback.Refused
		t.trips += s.Fallback.Trips
		t.handedBack += s.Fallback.HandedBack
		t.lost += s.Fallback.Lost
		t.owed += s.Fallback.Owed
		t.open += s.Fallback.Open
	}
	return t
}

// since returns the counts since an earlier tally.
func (t tally) since(before tally) tally {
	t.shared -= before.shared
	t.local -= before.local
	t.passed -= before.passed
	t.refused -= before.refused
	t.trips -= before.trips
	t.handedBack -= before.handedBack
	t.lost -= before.lost
	return t
}
