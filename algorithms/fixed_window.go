package algorithms

// fixedWindow: n units were used in the window of t, the last write. Windows
// are aligned to the epoch, or are days or months of a calendar.
type fixedWindow struct{ windowed }

// windowed is what counters of windows share.
type windowed struct{}

func (windowed) charge(s state, _, units, _ int64) state {
	s.n += units
	return s
}

func (windowed) force(s state, _, units, _ int64, l *terms) state {
	s.n = min(s.n+units, max(s.n, l.cap))
	return s
}

func (windowed) answer(s state, _ int64, _ *terms) answer { return answerOf(s) }

func (windowed) delayUntil(answer, int64, *terms) int64 { return 0 }

// repaired returns the instant at which a state written at t is judged, and
// whether t lies so far ahead that the clock must have stepped back. Units are
// kept then, so that a step back opens no second quota.
func repaired(t, now int64) (int64, bool) {
	if t > now+tolerance {
		return now, true
	}
	return t, false
}

func (fixedWindow) at(s state, now int64, l *terms) (state, bool) {
	s.n, s.f = min(s.n, l.cap), 0
	if s.n == 0 {
		return state{t: now}, false
	}
	t, repair := repaired(s.t, now)
	s.t = max(t, now)
	// Debt goes into the next windows: each pays off one full limit.
	s.n -= min(l.turned(t, s.t), ceilDiv(s.n, l.requests)) * l.requests
	s.n = max(0, s.n)
	return s, repair
}

func (fixedWindow) used(s state, _ *terms) int64 { return s.n }

// backfill charges what was admitted in the present window.
func (fixedWindow) backfill(s state, _, units, at int64, l *terms) state {
	if l.turned(at, s.t) == 0 {
		s.n += min(units, max(0, l.requests-s.n))
	}
	return s
}

func (fixedWindow) grant(s state, units int64) state {
	s.n = max(0, s.n-units)
	return s
}

func (w fixedWindow) undo(_, s state, _, units int64, r Receipt, l *terms) state {
	if l.turned(r.t, s.t) != 0 {
		return s
	}
	return w.grant(s, units)
}

func (fixedWindow) retryAt(a answer, need int64, l *terms) int64 {
	return l.turn(a.t, ceilDiv(a.n+need-l.requests, l.requests))
}

func (w fixedWindow) unitAt(a answer, l *terms) int64 {
	if a.n < l.requests {
		return 0
	}
	return w.retryAt(a, 1, l)
}

func (fixedWindow) resetAt(a answer, l *terms) int64 {
	if a.n == 0 {
		return 0
	}
	return l.turn(a.t, ceilDiv(a.n, l.requests))
}
