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

// Take decides a lone take of cost units, at most MaxUnits, from a stored state.
// t must be the zero Lone.
func (t *Lone) Take(s State, now, cost int64, l *Limit) {
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
	if d := l.Row.delayer; d != nil && t.Charged {
		t.ServeAt = d.delayUntil(t.State, cost, l)
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
