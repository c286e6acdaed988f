// A take that is alone in its call. No other check can deny it or change its
// state between verdict and charge, so it needs no Item and no Call. It decides
// as Call.Decide does, in half the time, and for buckets in a third: their step
// is called directly rather than through its interface.

package step

// A Lone is the outcome of a lone take: the state that it left, and the instants
// that its figures count to.
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
func (l *Limit) Take(s State, now, cost int64) (t Lone) {
	if _, ok := l.Row.step.(tokenBucket); ok {
		t.takeBucket(s, now, cost, l)
		return t
	}
	step, need := l.Row.step, cost
	t.State, t.Dirty = step.at(s, now, l)
	t.Allowed = l.fits(step.used(t.State, l), cost)
	if t.Allowed {
		need = 0
		if cost > 0 {
			t.State = step.charge(t.State, now, cost, 0)
			t.Dirty, t.Charged = true, true
		}
	}
	t.Used = step.used(t.State, l)
	a := step.answer(t.State, need, l)
	if t.Used > 0 {
		t.FullAt = step.freeAt(a, l.Burst, l)
	}
	if t.Used >= l.Burst {
		t.UnitAt = step.freeAt(a, 1, l)
	}
	if !t.Allowed && cost <= l.Most {
		t.RetryAt = step.freeAt(a, min(cost, l.Burst), l)
	}
	if d, ok := step.(delayer); ok && t.Charged {
		t.ServeAt = d.delayUntil(a, cost, l)
	}
	return t
}

func (t *Lone) takeBucket(s State, now, cost int64, l *Limit) {
	s, t.Dirty = tokenBucket{}.at(s, now, l)
	t.Allowed = l.fits(s.N, cost)
	if t.Allowed && cost > 0 {
		s.N += cost
		t.Dirty, t.Charged = true, true
	}
	t.State, t.Used = s, s.N
	if s.N > 0 {
		t.FullAt = after(s.T, s.F, s.N, l)
	}
	if s.N >= l.Burst {
		t.UnitAt = after(s.T, s.F, s.N+1-l.Burst, l)
	}
	if !t.Allowed && cost <= l.Most {
		t.RetryAt = after(s.T, s.F, s.N+min(cost, l.Burst)-l.Burst, l)
	}
}

// Figures computes the figures of the take at now.
func (t *Lone) Figures(l *Limit, now, cost int64) Figures {
	f := Figures{
		Allowed: t.Allowed, Remaining: max(0, l.Burst-t.Used),
		ResetAfter: until(t.FullAt, now), UnitAfter: until(t.UnitAt, now), Delay: until(t.ServeAt, now),
	}
	switch {
	case t.Allowed:
	case cost > l.Most:
		f.RetryAfter = forever
	default:
		f.RetryAfter = until(t.RetryAt, now)
	}
	return f
}

// Receipt returns the receipt of a take that was charged.
func (t *Lone) Receipt(l *Limit, now, cost int64, source uint8) Receipt {
	return Receipt{Units: cost, At: now, T: t.State.T, N: t.State.N, F: t.State.F, Row: l.Row, Source: source}
}

// Refused returns the figures of a take for whose key the store has no room.
func Refused() Figures { return Figures{Undecided: true, RetryAfter: refusedFor} }
