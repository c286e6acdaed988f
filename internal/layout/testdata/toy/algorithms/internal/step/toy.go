// The toy: a fixed window whose windows turn half a window after the others'.

package step

type toy struct{ fixedWindow }

func (toy) turned(from, to int64, l *Limit) int64 {
	half := l.Window / 2
	return (to+half)/l.Window - (from+half)/l.Window
}

func (t toy) at(s State, now int64, l *Limit) (State, bool) {
	s.N, s.F = min(s.N, l.Cap), 0
	if s.N == 0 {
		return State{T: now}, false
	}
	written, repair := repaired(s.T, now)
	s.T = max(written, now)
	s.N = max(0, s.N-min(t.turned(written, s.T, l), ceilDiv(s.N, l.Requests))*l.Requests)
	return s, repair
}

func (t toy) undo(_, s State, units int64, r *Receipt, l *Limit) State {
	if t.turned(r.T, s.T, l) != 0 {
		return s
	}
	return t.grant(s, units)
}

func (toy) freeAt(s State, units int64, l *Limit) int64 {
	half := l.Window / 2
	return ((s.T+half)/l.Window+ceilDiv(s.N+units-l.Requests, l.Requests))*l.Window - half
}
