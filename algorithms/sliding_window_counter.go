package algorithms

// slidingWindowCounter: n units in the window of t, the last write, and f in
// the one before, which counts in the proportion that a window ending now
// still overlaps. (Cloudflare, "How we built rate limiting capable of scaling
// to millions of domains", 2017.)
//
// t is the last write rather than the window's start: the same answers, and a
// changed window has a defined meaning.
type slidingWindowCounter struct{ windowed }

func (slidingWindowCounter) at(s state, now int64, l *terms) (state, bool) {
	s.n, s.f = min(s.n, l.cap), min(s.f, l.cap)
	if s.empty() {
		return state{t: now}, false
	}
	t, repair := repaired(s.t, now)
	s.t = max(t, now)
	switch s.t/l.window - t/l.window {
	case 0:
	case 1:
		s.n, s.f = 0, s.n
	default:
		s.n, s.f = 0, 0
	}
	return s, repair
}

// used is the estimate, rounded up. As the limit and all costs are integers,
// rounding up neither loses nor over-admits anything.
func (slidingWindowCounter) used(s state, l *terms) int64 {
	weight, exact := mulDiv(s.f, l.window-s.t%l.window, l.window)
	if !exact {
		weight++
	}
	return s.n + weight
}

// backfill charges the window that the units were admitted in, the present one
// as a take does. The previous one counts in proportion, and is filled as if it
// counted in full: that loses a little where several instances fill it, and
// never makes a debt.
func (c slidingWindowCounter) backfill(s state, _, units, at int64, l *terms) state {
	switch s.t/l.window - at/l.window {
	case 0:
		s.n += min(units, max(0, l.requests-c.used(s, l)))
	case 1:
		s.f += min(units, max(0, l.requests-s.n-s.f))
	}
	return s
}

// grant credits the present window first, since its units count in full.
func (slidingWindowCounter) grant(s state, units int64) state {
	credit := min(s.n, units)
	s.n -= credit
	s.f = max(0, s.f-(units-credit))
	return s
}

func (slidingWindowCounter) undo(_, s state, _, units int64, r Receipt, l *terms) state {
	switch s.t/l.window - r.t/l.window {
	case 0:
		s.n = max(0, s.n-units)
	case 1:
		s.f = max(0, s.f-units)
	}
	return s
}

func (slidingWindowCounter) retryAt(a answer, need int64, l *terms) int64 {
	i := a.t / l.window
	if room := l.requests - a.n - need; room >= 0 {
		// The wait ends in this window, when enough of the previous one has
		// rolled away, or exactly at its end.
		q, _ := mulDiv(room, l.window, a.f)
		return (i+1)*l.window - q
	}
	// It crosses: the present count becomes the previous one.
	q, _ := mulDiv(l.requests-need, l.window, a.n)
	return (i+2)*l.window - q
}

func (c slidingWindowCounter) unitAt(a answer, l *terms) int64 {
	if c.used(state{t: a.t, n: a.n, f: a.f}, l) < l.requests {
		return 0
	}
	return c.retryAt(a, 1, l)
}

func (slidingWindowCounter) resetAt(a answer, l *terms) int64 {
	switch i := a.t / l.window; {
	case a.n > 0:
		return (i + 2) * l.window
	case a.f > 0:
		return (i + 1) * l.window
	default:
		return 0
	}
}
