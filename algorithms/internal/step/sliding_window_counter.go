// The sliding window counter: N units in the window of T, the last write, and F
// units in the window before. A window of length w that ends now overlaps a
// part of the previous window, and F counts in that proportion:
//
//	used = N + ceil(F · (w - T mod w) / w)
//
// (Cloudflare, "How we built rate limiting capable of scaling to millions of
// domains", 2017.) The limit and all costs are integers, so rounding up denies
// nothing that the exact fraction would admit.
//
// A need fits when F's part has shrunk to the room that N leaves, R - N - need.
// That is floor(room · w / F) before the end of the window. If N leaves no
// room, the wait crosses the turn: N becomes the previous window and F is gone.
//
// Example: R = 100 per 60 s, F = 84, N = 36, 15 s into the window. 45 of 60 s
// overlap, so used = 36 + ceil(84 · 45/60) = 99, and one unit fits. After it N
// = 37, and the next unit has the room 100 - 37 - 1 = 62. It fits 62 · 60/84 =
// 44.29 s before the end, at 15.71 s.
//
// The worst case is 2R - 1 in any w. R requests come in the last instant of a
// window. F's part loses a unit every w/R after the turn, and each time one more
// request fits. R - 1 of these come within w of the burst.
//
// T is the last write rather than the window's start. The answers are the same,
// and a changed window has a defined meaning.

package step

type slidingWindowCounter struct{}

func (slidingWindowCounter) at(s State, now int64, l *Limit) (State, bool) {
	s.N, s.F = min(s.N, l.Cap), min(s.F, l.Cap)
	if s.Empty() {
		return State{T: now}, false
	}
	t, repair := repaired(s.T, now)
	s.T = max(t, now)
	switch s.T/l.Window - t/l.Window {
	case 0:
	case 1:
		s.N, s.F = 0, s.N
	default:
		s.N, s.F = 0, 0
	}
	return s, repair
}

func (slidingWindowCounter) used(s State, l *Limit) int64 {
	return s.N + MulDivUp(s.F, l.Window-s.T%l.Window, l.Window)
}

// grant credits the window of T first, because its units count in full.
func (slidingWindowCounter) grant(s State, units int64) State {
	credit := min(s.N, units)
	s.N -= credit
	s.F = max(0, s.F-(units-credit))
	return s
}

func (slidingWindowCounter) undo(_, s State, units int64, r *Receipt, l *Limit) State {
	switch s.T/l.Window - r.T/l.Window {
	case 0:
		s.N = max(0, s.N-units)
	case 1:
		s.F = max(0, s.F-units)
	}
	return s
}

func (slidingWindowCounter) freeAt(s State, units int64, l *Limit) int64 {
	i := s.T / l.Window
	if room := l.Requests - s.N - units; room >= 0 {
		q, _ := MulDiv(room, l.Window, s.F)
		return (i+1)*l.Window - q
	}
	q, _ := MulDiv(l.Requests-units, l.Window, s.N)
	return (i+2)*l.Window - q
}
