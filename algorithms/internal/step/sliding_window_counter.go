// The sliding window counter: N units in the window of T, the last write, and F
// units in the window before. The previous window counts in the proportion that
// a window which ends now still overlaps:
//
//	used = N + ceil(F · (window - T mod window) / window)
//
// (Cloudflare, "How we built rate limiting capable of scaling to millions of
// domains", 2017.) The limit and all costs are integers, so rounding up neither
// loses nor over-admits anything.
//
// A need fits when F's part has shrunk to the room that N leaves. If N leaves
// room, that happens in this window, or exactly at its end. Otherwise the wait
// crosses the turn: N becomes the previous window and F is gone.
//
// T is the last write rather than the window's start. The answers are the same,
// and a changed window has a defined meaning.

package step

type slidingWindowCounter struct{}

func (slidingWindowCounter) at(s State, now int64, l *Limit) (State, bool) {
	s.N, s.F = min(s.N, l.Cap), min(s.F, l.Cap)
	if !s.Spent() {
		return State{T: now, More: s.More}, false
	}
	t, repair := repaired(s.T, now)
	if repair {
		s = s.reborn(now)
	}
	s.T = max(t, now)
	switch s.T/l.Window - t/l.Window {
	case 0:
	case 1:
		s.N, s.F = 0, s.N
	default:
		s.N, s.F = 0, 0
	}
	if !s.Spent() {
		return s.forgotten(s.T), repair
	}
	return s, repair
}

func (slidingWindowCounter) used(s State, l *Limit) int64 {
	return s.N + MulDivUp(s.F, l.Window-s.T%l.Window, l.Window)
}

func (slidingWindowCounter) charge(s State, _, units, _ int64, _ *Limit) State {
	s.N += units
	return s
}

// backfill charges the window in which the units were admitted: the present one
// as a take does, the previous one as if it counted in full. That loses a
// little where several instances fill it, and never makes a debt.
func (c slidingWindowCounter) backfill(s State, _, units, at int64, l *Limit) State {
	switch s.T/l.Window - at/l.Window {
	case 0:
		s.N += min(units, max(0, l.Requests-c.used(s, l)))
	case 1:
		s.F += min(units, max(0, l.Requests-s.N-s.F))
	}
	return s
}

// grant credits the present window first, because its units count in full.
func (slidingWindowCounter) grant(s State, units int64, _ *Limit) State {
	credit := min(s.N, units)
	s.N -= credit
	s.F = max(0, s.F-(units-credit))
	return s
}

func (slidingWindowCounter) undo(_, s State, _, units int64, r *Receipt, l *Limit) State {
	switch s.T/l.Window - r.T/l.Window {
	case 0:
		s.N = max(0, s.N-units)
	case 1:
		s.F = max(0, s.F-units)
	}
	return s
}

func (slidingWindowCounter) entries(s State, l *Limit) []Entry {
	return []Entry{{s.T - l.Window, s.F}, {s.T, s.N}}
}

func (slidingWindowCounter) answer(s State, _ int64, _ *Limit) Answer { return answerOf(s) }

func (slidingWindowCounter) freeAt(a Answer, units int64, l *Limit) int64 {
	i := a.T / l.Window
	if room := l.Requests - a.N - units; room >= 0 {
		q, _ := MulDiv(room, l.Window, a.F)
		return (i+1)*l.Window - q
	}
	q, _ := MulDiv(l.Requests-units, l.Window, a.N)
	return (i+2)*l.Window - q
}
