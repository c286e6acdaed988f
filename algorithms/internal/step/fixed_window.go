// The fixed window: N units were used in the window of T, the last write.
// Windows are aligned to the Unix epoch: window i is [i·w, (i+1)·w).
//
// A Force may leave more units in use than the limit. That debt goes into the
// next windows: each pays off one full limit when it turns. So k units fit
// after ceil((N + k - requests) / requests) turns.
//
// Example: 10 per minute, and a Force leaves N = 25. The next window begins
// with 15 units in use, the one after with 5, so 5 more are admitted there. One
// unit fits after ceil(16 / 10) = 2 turns.

package step

type fixedWindow struct{ counted }

func (fixedWindow) at(s State, now int64, l *Limit) (State, bool) {
	s.N, s.F = min(s.N, l.Cap), 0
	if s.N == 0 {
		return State{T: now}, false
	}
	t, repair := repaired(s.T, now)
	s.T = max(t, now)
	s.N = max(0, s.N-min(l.Turned(t, s.T), ceilDiv(s.N, l.Requests))*l.Requests)
	return s, repair
}

func (w fixedWindow) undo(_, s State, units int64, r *Receipt, l *Limit) State {
	if l.Turned(r.T, s.T) != 0 {
		return s
	}
	return w.grant(s, units)
}

func (fixedWindow) freeAt(s State, units int64, l *Limit) int64 {
	return l.Turn(s.T, ceilDiv(s.N+units-l.Requests, l.Requests))
}
