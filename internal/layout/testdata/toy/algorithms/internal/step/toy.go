// The toy: a fixed window whose windows turn half a window after the others'.

package step

type toy struct{ fixedWindow }

func (toy) turned(from, to int64, l *Limit) int64 {
	half := l.Window / 2
	return (to+half)/l.Window - (from+half)/l.Window
}

func (t toy) at(s State, now int64, l *Limit) (State, bool) {
	s.F = 0
	s = s.lowered(l.Cap, now)
	if s.N == 0 {
		return State{T: now, More: s.More}, false
	}
	written, repair := repaired(s.T, now)
	if repair {
		s = s.reborn(now)
	}
	s.T = max(written, now)
	s.N -= min(t.turned(written, s.T, l), ceilDiv(s.N, l.Requests)) * l.Requests
	if s.N <= 0 {
		return s.forgotten(s.T), repair
	}
	return s, repair
}

func (t toy) backfill(s State, _, units, at int64, l *Limit) State {
	if t.turned(at, s.T, l) == 0 {
		s.N += min(units, max(0, l.Requests-s.N))
	}
	return s
}

func (t toy) undo(_, s State, _, units int64, r *Receipt, l *Limit) State {
	if t.turned(r.T, s.T, l) != 0 {
		return s
	}
	return t.grant(s, units, l)
}

func (toy) freeAt(a Answer, units int64, l *Limit) int64 {
	half := l.Window / 2
	return ((a.T+half)/l.Window+ceilDiv(a.N+units-l.Requests, l.Requests))*l.Window - half
}
