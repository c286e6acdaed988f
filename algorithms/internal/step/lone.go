// A take that is alone in its call. No other check can deny it or change its state between verdict and charge, so it
// needs no Item and no Call. It gives the same decision as Call.Decide, in half the time. Twin: lua/takes.lua.

package step

import "time"

// A Lone is the outcome of a lone take: the state after it, and the instants
// from which figures are computed.
type Lone struct {
	State   State // after the charge, or uncharged
	Dirty   bool  // State must be written
	Allowed bool
	Charged bool
	Used    int64 // of the burst
	FullAt  int64 // when State is empty again; 0 if it is
	UnitAt  int64 // when one unit fits; 0 if one does
	RetryAt int64 // when the cost fits; 0 if it does or never will
	ServeAt int64 // when to serve the request; 0: at once
}

// TakesLone reports whether Take decides takes under the limit.
func (l *Limit) TakesLone() bool { return l.Row.step != nil && !l.Row.TakesApart }

// Bucket reports whether TakeBucket decides takes under the limit.
func (l *Limit) Bucket() bool { return l.Row.Refill == Continuously }

// TakeBucket is Take for both buckets, the commonest limits. It makes no interface
// calls, so the limit may stay on its caller's stack. t must be the zero Lone.
func (t *Lone) TakeBucket(s State, now, cost int64, l *Limit) {
	s, t.Dirty = tokenBucket{}.at(s, now, l)
	if t.Allowed = l.fits(s.N, cost); t.Allowed && cost > 0 {
		s.N += cost
		t.Dirty, t.Charged = true, true
	}
	t.State, t.Used = s, s.N
	if s.N > 0 {
		t.FullAt = after(s.T, s.F, s.N, l)
	}
	if s.N >= l.Burst {
		t.UnitAt = tokenBucket{}.freeAt(s, 1, l)
	}
	if !t.Allowed && cost <= l.Most {
		t.RetryAt = tokenBucket{}.freeAt(s, min(cost, l.Burst), l)
	}
	if t.Charged && l.Row.delayer != nil {
		t.ServeAt = leakyBucket{}.delayUntil(s, cost, l)
	}
}

// Take decides a lone take of cost units, at most MaxUnits, from a stored state.
// t must be the zero Lone.
func (t *Lone) Take(s State, now, cost int64, l *Limit) {
	if l.Bucket() {
		t.TakeBucket(s, now, cost, l)
		return
	}
	need := cost
	t.State, t.Dirty = l.Row.step.at(s, now, l)
	t.Used = l.Used(t.State)
	t.Allowed = l.fits(t.Used, cost)
	if t.Allowed {
		need = 0
		if cost > 0 {
			t.State = l.charge(t.State, now, cost, 0)
			t.Used += cost
			t.Dirty, t.Charged = true, true
		}
	}
	a := l.answer(t.State, need)
	if t.Used > 0 {
		t.FullAt = l.freeAt(&a, l.Burst)
	}
	if t.Used >= l.Burst {
		t.UnitAt = l.freeAt(&a, 1)
	}
	if !t.Allowed && cost <= l.Most {
		t.RetryAt = l.freeAt(&a, min(cost, l.Burst))
	}
}

// RetryAfter returns how long until the cost of a denied take fits.
func (t *Lone) RetryAfter(l *Limit, now, cost int64) time.Duration {
	if cost > l.Most {
		return forever
	}
	return Until(t.RetryAt, now)
}

// Receipt writes the receipt of a take that was charged, in place.
func (t *Lone) Receipt(r *Receipt, l *Limit, cost int64, source uint8) {
	r.Units, r.T, r.N, r.F = cost, t.State.T, t.State.N, t.State.F
	r.ID, r.Last, r.Source, r.Row = 0, 0, source, l.Row
}

// Refused returns the figures of a take for whose key the store has no room.
func Refused() Figures { return Figures{Undecided: true, RetryAfter: refusedFor} }
