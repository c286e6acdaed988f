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

type fixedWindow struct{}

func (fixedWindow) at(s State, now int64, l *Limit) (State, bool) {
	s.F = 0
	s = s.lowered(l.Cap, now)
	if s.N == 0 {
		return State{T: now, More: s.More}, false
	}
	t, repair := repaired(s.T, now)
	if repair {
		s = s.reborn(now)
	}
	s.T = max(t, now)
	s.N -= min(l.Turned(t, s.T), ceilDiv(s.N, l.Requests)) * l.Requests
	if s.N <= 0 {
		return s.forgotten(s.T), repair
	}
	return s, repair
}

func (fixedWindow) used(s State, _ *Limit) int64 { return s.N }

func (fixedWindow) charge(s State, _, units, _ int64, _ *Limit) State {
	s.N += units
	return s
}

// backfill charges units that were admitted in the present window.
func (fixedWindow) backfill(s State, _, units, at int64, l *Limit) State {
	if l.Turned(at, s.T) == 0 {
		s.N += min(units, max(0, l.Requests-s.N))
	}
	return s
}

func (fixedWindow) grant(s State, units int64, _ *Limit) State {
	s.N = max(0, s.N-units)
	return s
}

func (w fixedWindow) undo(_, s State, _, units int64, r *Receipt, l *Limit) State {
	if l.Turned(r.T, s.T) != 0 {
		return s
	}
	return w.grant(s, units, l)
}

func (fixedWindow) answer(s State, _ int64, _ *Limit) Answer { return answerOf(s) }

func (fixedWindow) freeAt(a Answer, units int64, l *Limit) int64 {
	return l.Turn(a.T, ceilDiv(a.N+units-l.Requests, l.Requests))
}
