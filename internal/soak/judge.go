// Which promises were kept, by what was counted.

package main

import (
	"time"
)

// closedWithin is how long circuits may stay open once Redis is well: a probe comes every
// second, or every two after an early return, and the pool dials once a second.
const closedWithin = 3 * time.Second

// awaitClosed waits until every circuit has been closed once, which is to be
// soon, and returns how long that took.
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

// awaitTold waits until Redis has received the owed units, once nobody calls.
func (l *leg) awaitTold() {
	for begin := time.Now(); time.Since(begin) < 2*closedWithin; time.Sleep(10 * tick) {
		if t := l.tally(); t.owed == 0 && t.open == 0 {
			return
		}
	}
	l.broken("%d keys are owed and %d circuits open %v after the last call", l.tally().owed, l.tally().open, 2*closedWithin)
}

func (l *leg) judgeWaits() lateness {
	waits := l.waits.judge()
	for _, call := range waits.over {
		l.broken("a call of %d slots took %v, and more than %v without the machine's stalls",
			call.parts, call.length(), time.Duration(call.parts)*deadline+grace)
	}
	return waits
}

// judgeBooks judges what keys were admitted.
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

// A tally is the sum of what the limiters count.
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

// since returns what was counted since an earlier tally.
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
