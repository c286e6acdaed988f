// The counts of an act, and whether they keep the promises.
//
// Promise 5. An open circuit probes every second, and its client may need a
// second to dial. But a circuit that opens again within 10 s of its closing
// doubles the pauses between its probes, up to 30 s. So the history of a circuit
// says how long it may take to close. For example, a circuit that has twice
// opened again too soon probes every 4 s, and may take 6 s.

package main

import (
	"time"

	"github.com/penstock-go/penstock/algorithms"
)

// The first three are the circuit's own (algorithms/shared/fallback_circuit.go).
const (
	steadyPause = time.Second
	longPause   = 30 * time.Second
	steadyAfter = 10 * time.Second
	closeSlack  = 2 * time.Second // beyond the pause between two probes
)

// recovery returns how long after the end of the trouble a circuit closed, and
// how long it may take. If it has not closed, took is negative. The latest 16
// changes suffice: after five hasty openings the pause grows no more.
func recovery(changes []algorithms.CircuitChange, end time.Time) (took, within time.Duration) {
	var last algorithms.CircuitChange
	pause := steadyPause
	for _, c := range changes {
		switch {
		case c.Open && !last.At.IsZero() && c.At.Sub(last.At) < steadyAfter:
			pause = min(2*pause, longPause)
		case c.Open:
			pause = steadyPause
		case last.At.After(end): // it was closed at the end
			return 0, pause + closeSlack
		case c.At.After(end):
			return c.At.Sub(end), pause + closeSlack
		}
		last = c
	}
	if last.Open {
		took = -1
	}
	return took, pause + closeSlack
}

// awaitClosed checks promise 5. It waits until every circuit has been closed once,
// and returns how long that took.
func (l *leg) awaitClosed() (slowest time.Duration) {
	end := time.Now()
	for _, in := range l.instances {
		took, within := recovery(in.limiter.Stats().Changes, end)
		for ; took < 0; took, within = recovery(in.limiter.Stats().Changes, end) {
			if time.Since(end) > 3*within {
				l.broken("a circuit is open %v after the last trouble", 3*within)
				return time.Since(end)
			}
			time.Sleep(10 * tick)
		}
		if net := took - l.waits.stalledBetween(end, end.Add(took)); net > within {
			l.broken("a circuit took %v to close after the last trouble, and %v without the machine's stalls; want %v", took, net, within)
		}
		slowest = max(slowest, took)
	}
	return slowest
}

// awaitTold waits until the instances have reported everything to Redis. Call it
// when no caller is left.
func (l *leg) awaitTold() {
	var within time.Duration
	for _, in := range l.instances {
		_, w := recovery(in.limiter.Stats().Changes, time.Now())
		within = max(within, 2*w)
	}
	for begin := time.Now(); time.Since(begin) < within; time.Sleep(10 * tick) {
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
		if s.Fallback.Open {
			t.open++
		}
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
