// The counts of an act, and whether they keep the promises.

package main

import (
	"time"
)

// closedWithin is promise 5. A probe comes every second, and the pool dials once a
// second. But a circuit that opens again within 10 s of its closing doubles the
// pauses between its probes, up to 30 s, and may then break this promise.
const closedWithin = 3 * time.Second

// awaitClosed checks promise 5. It waits until every circuit has been closed once,
// and returns how long that took.
func (l *leg) awaitClosed() time.Duration {
	begin := time.Now()
	for _, in := range l.instances {
		for in.limiter.Stats().Fallback.Open {
			if time.Since(begin) > 3*closedWithin {
				l.broken("a circuit is open %v after the last trouble", 3*closedWithin)
				return time.Since(begin)
			}
			time.Sleep(10 * tick)
		}
	}
	took := time.Since(begin)
	if net := took - l.waits.stalledSince(begin); net > closedWithin {
		l.broken("circuits took %v to close after the last trouble, and %v without the machine's stalls; want %v", took, net, closedWithin)
	}
	return took
}

// awaitTold waits until the instances have reported everything to Redis. Call it
// when no caller is left.
func (l *leg) awaitTold() {
	for begin := time.Now(); time.Since(begin) < 2*closedWithin; time.Sleep(10 * tick) {
		if t := l.tally(); t.owed == 0 && t.open == 0 {
			return
		}
	}
	l.broken("%d keys are not handed back and %d circuits are open %v after the last call", l.tally().owed, l.tally().open, 2*closedWithin)
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
