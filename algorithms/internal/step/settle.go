// Settlements: changes of a key after its takes, one item at a time.

package step

// settle applies a settlement to its key's state.
func (it *Item) settle(now int64) {
	it.Answer.Allowed = true
	step, l := it.Limit.Row.step, &it.Limit
	if step == nil || it.Dropped {
		return
	}
	held := &it.Home.Held
	it.Answer.Missing = !held.Exists
	whole := *l
	if it.Op == Return {
		whole.Cap = l.highest() // units that are cut cannot be told from others
	}
	before, changed := step.at(held.State, now, &whole)
	after, always := it.settled(before, now, changed, &whole)
	if changed || always || !after.equal(before) {
		held.State, held.Dirty = after, true
	}
	after, _ = step.at(held.State, now, l) // undo may have returned the state of an earlier instant
	it.put(step.answer(after, 0, l))
}

// settled returns the state after the settlement, and whether the key must be
// written even if its state is unchanged.
//
// at begins an era if the rate is another one. A take of the era before is still
// in the state if no other write has changed the key since. After a repair of the
// clock it is not.
func (it *Item) settled(s State, now int64, repaired bool, l *Limit) (after State, always bool) {
	step := it.Limit.Row.step
	switch {
	case it.Op == Reset:
		held := &it.Home.Held
		if always = held.Exists || held.Dirty; always && !l.Row.FindsUnits {
			return held.State.forgotten(now), true
		}
		return State{T: now}, always
	case it.Cost == 0:
		return s, false
	}
	switch it.Op {
	case Force:
		return l.force(s, now, it.Cost, it.ID), true
	case Grant:
		granted := step.grant(s, it.Cost, l)
		if !granted.Spent() && s.rate().w > 0 { // receipts must not outlive the note
			return granted.forgotten(now), true
		}
		return granted, true
	case Backfill:
		return step.backfill(s, now, it.Cost, it.Receipt.At, l), false
	case Renew:
		if r, ok := step.(renewer); ok {
			return r.renew(s, now, &it.Receipt, l), true
		}
		return s, false
	}
	r, stored := &it.Receipt, it.Home.Held.State
	switch {
	case !s.Spent():
		return s, false
	case s.Era() == r.Era:
		return step.undo(stored, s, now, it.Cost, r, l), false
	case !repaired && stored.Era() == r.Era && stored.left(r):
		return step.undo(stored, stored, now, it.Cost, r, l), false
	}
	return s, false
}

// adds reports whether a settlement may charge a key that is new.
func (it *Item) adds() bool {
	if it.Cost == 0 || it.Dropped || it.Limit.Row.step == nil {
		return false
	}
	if it.Op == Renew {
		_, ok := it.Limit.Row.step.(renewer)
		return ok
	}
	return it.Op == Force || it.Op == Backfill
}
