// Settlements: changes of a key after its takes, one item at a time.

package step

// settle applies a settlement to its key's state.
//
// A Grant works on the stored state, so its result does not depend on its limit. Only a repair comes first: a state in
// the future would grow old at the wrong instant. The figures after a Grant come from a copy, because at trims logs.
func (it *Item) settle(now int64) {
	it.Answer.Allowed = true
	step, l, held := it.Limit.Row.step, &it.Limit, &it.Home.Held
	if step == nil || it.Dropped {
		return
	}
	it.Answer.Missing = !held.Exists
	switch {
	case it.Op == Reset:
		held.State, held.Dirty = State{}, held.Dirty || held.Exists
	case it.Op == Grant && held.State.T <= now+tolerance:
		if it.Cost > 0 && !held.State.Empty() {
			held.State, held.Dirty = step.grant(held.State, it.Cost), true
		}
	default:
		s, changed := step.at(held.State, now, l)
		if changed {
			held.State, held.Dirty = s, true
		}
		if after := it.settled(held.State, s, now); after != s || it.Op == Force && it.Cost > 0 {
			held.State, held.Dirty = after, true
		}
	}
	view := held.State
	if it.Op == Grant {
		view = view.copied()
	}
	s, _ := step.at(view, now, l)
	it.put(l.answer(s, 0))
}

// settled returns the state after the settlement. stored is the state before at, and s after it.
func (it *Item) settled(stored, s State, now int64) State {
	l := &it.Limit
	switch r := l.Row.renewer; {
	case it.Cost == 0:
	case it.Op == Force:
		return l.force(s, now, it.Cost, it.ID)
	case it.Op == Backfill:
		return l.backfill(s, now, it.Cost, it.ID)
	case it.Op == Renew && r != nil:
		return r.renew(s, now, &it.Receipt, l)
	case s.Empty():
	case it.Op == Grant:
		return l.Row.step.grant(s, it.Cost)
	case it.Op == Return:
		return l.Row.step.undo(stored, s, it.Cost, &it.Receipt, l)
	}
	return s
}

// adds reports whether a settlement may charge a key that is new.
func (it *Item) adds() bool {
	if it.Cost == 0 || it.Dropped || it.Limit.Row.step == nil {
		return false
	}
	return it.Op == Force || it.Op == Backfill || it.Op == Renew && it.Limit.Row.renewer != nil
}
