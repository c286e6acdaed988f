package algorithms

import (
	"errors"
	"fmt"
)

// An item is a check as a store decides it. A slice of them is one call.
type item struct {
	check *Check
	algo  Algorithm
	op    Op
	terms terms
	cost  int64 // at most maxUnits
	need  int64 // cost, plus what earlier takes of the call ask from the key

	id      int64   // of a take that is told apart from others
	receipt Receipt // Return and Renew: what they read

	home    int // the first item with the same stored key; it holds the state
	instead int // TrialInstead: the take to leave out

	stored state // at home: what the store holds, or will
	exists bool  // at home: the store had a state that parses
	dirty  bool  // at home: stored must be written
	judged state // brought to now

	refused bool // the store has no room for the key
	dropped bool // Return, Renew: the receipt is another limiter's
	answer  answer
}

// maxChecks bounds a call: it is decided in one step, while all others wait.
const maxChecks = 1_000

var (
	errMixed = fmt.Errorf("algorithms: %w: takes and settlements in one call", ErrInvalid)
	errFirst = fmt.Errorf("algorithms: %w: trial-instead without a take before it", ErrInvalid)
	errTrial = fmt.Errorf("algorithms: %w: a trial needs a key of its own, not a take's", ErrInvalid)
)

// newItems turns checks for a limiter that answers as source into items that
// live in buf, if they fit. The error names every mistake, and wraps
// ErrInvalid.
func newItems(buf []item, checks []Check, source Source) ([]item, error) {
	if len(checks) > maxChecks {
		return nil, fmt.Errorf("algorithms: %w: %d checks in one call, want at most %d", ErrInvalid, len(checks), maxChecks)
	}
	items, take := buf[:0], -1
	var errs []error
	for i := range checks {
		c := &checks[i]
		if err := c.validate(); err != nil {
			errs = append(errs, err)
			continue
		}
		if c.Op.settles() != checks[0].Op.settles() {
			errs = append(errs, errMixed)
		}
		switch c.Op {
		case Take:
			take = i
		case TrialInstead:
			if take < 0 {
				errs = append(errs, errFirst)
			}
		}
		items = append(items, item{
			check: c, algo: c.Limit.algorithm, op: c.Op, terms: c.Limit.terms,
			cost: c.units(), receipt: c.Decision.Receipt, instead: take,
			dropped: c.Op.reads() && c.Decision.Receipt.units > 0 && c.Decision.Receipt.source != source,
		})
		if c.Limit.algorithm.Concurrent() {
			items[len(items)-1].id = ids.Add(1)
		}
	}
	if errs != nil {
		return nil, errors.Join(errs...)
	}
	return items, nil
}

// units is the cost that a store sees. Whatever exceeds maxUnits is above any
// burst, and more than any state can hold.
func (c *Check) units() int64 {
	switch c.Op {
	case Return:
		return min(c.Cost, c.Decision.Receipt.units)
	case Renew:
		return c.Decision.Receipt.units
	}
	return min(c.Cost, maxUnits)
}

// share makes item i use the state of the first item with the same key, and
// adds up what is asked from it; same tells which items have that key. Trials
// of a take's key are the caller's mistake.
func share(items []item, i int, same func(j int) bool) error {
	it := &items[i]
	it.home, it.need = i, it.cost
	if it.op.settles() {
		it.need = 0
	}
	for j := range i {
		if items[j].home != j || !same(j) {
			continue
		}
		if (items[j].op == Take) != (it.op == Take) && !it.op.settles() {
			return errTrial
		}
		it.home = j
		break
	}
	for j := range i {
		if it.op == Take && items[j].op == Take && items[j].home == it.home {
			it.need += items[j].cost
		}
	}
	return nil
}

// judge gives every take its verdict against the states as they are, and
// returns how many are denied. It charges nothing, and so judges on after the
// first denial: responses want the figures of all.
func judge(items []item, now int64) (denied int) {
	for i := range items {
		it := &items[i]
		if it.op != Take {
			continue
		}
		it.look(items, now)
		if !it.answer.allowed {
			denied++
		}
	}
	return denied
}

// look brings the item's state to now and judges it.
func (it *item) look(items []item, now int64) {
	step := table[it.algo].step
	if step == nil { // nobody
		return
	}
	home := &items[it.home]
	s, changed := step.at(home.stored, now, &it.terms)
	if changed {
		home.stored, home.dirty = s, true
	}
	it.judged = s
	it.answer = step.answer(s, it.need, &it.terms)
	it.answer.allowed = it.terms.fit(step.used(s, &it.terms), it.need)
	it.answer.missing = !home.exists
}

// charge charges the takes, if none is denied, and then every trial whose
// condition holds and for whose key the store has room.
func charge(items []item, now int64, denied int, room func(i int) bool) {
	for i := range items {
		if it := &items[i]; it.op == Take && denied == 0 {
			it.charge(items, now)
		}
	}
	for i := range items {
		it := &items[i]
		if it.op != Trial && it.op != TrialInstead {
			continue
		}
		it.look(items, now)
		others := denied
		if it.op == TrialInstead && !items[it.instead].answer.allowed {
			others--
		}
		if it.answer.allowed && others == 0 && room(i) {
			it.charge(items, now)
		}
	}
}

// charge takes the item's cost from its key's state.
func (it *item) charge(items []item, now int64) {
	step := table[it.algo].step
	if step == nil {
		return
	}
	home := &items[it.home]
	s := it.judged
	if len(items) > 1 { // another item may have changed the state
		s, _ = step.at(home.stored, now, &it.terms)
	}
	if it.cost > 0 {
		s = step.charge(s, now, it.cost, it.id)
		home.stored, home.dirty = s, true
	}
	it.put(step.answer(s, 0, &it.terms))
	it.answer.charged = it.cost > 0
}

// put replaces the figures of an answer, and keeps its verdict.
func (it *item) put(a answer) {
	a.allowed, a.missing = it.answer.allowed, it.answer.missing
	it.answer = a
}

// settle applies a settlement to its key's state.
func (it *item) settle(items []item, now int64) {
	it.answer.allowed = true
	step := table[it.algo].step
	if step == nil || it.dropped { // nobody, or nobody here
		return
	}
	home := &items[it.home]
	before, changed := step.at(home.stored, now, &it.terms)
	it.answer.missing = !home.exists
	s := before
	switch {
	case it.op == Reset:
		s, changed = state{t: now}, home.exists || home.dirty
	case it.cost == 0:
	case it.op == Force:
		s, changed = step.force(s, now, it.cost, it.id, &it.terms), true
	case it.op == backfill:
		s = step.backfill(s, now, it.cost, it.receipt.at, &it.terms)
	case it.op == Grant:
		s, changed = step.grant(s, it.cost), true
	case it.op == Renew:
		if step, ok := step.(renewer); ok {
			s, changed = step.renew(s, now, it.receipt, &it.terms), true
		}
	case !s.empty():
		s = step.undo(home.stored, s, now, it.cost, it.receipt, &it.terms)
	}
	if changed || s.t != before.t || s.n != before.n || s.f != before.f {
		home.stored, home.dirty = s, true
	}
	s, _ = step.at(s, now, &it.terms) // undo may put back an earlier instant's
	it.put(step.answer(s, 0, &it.terms))
}

// adds reports whether a settlement may charge a key that is new.
func (it *item) adds() bool {
	return it.op == Force || it.op == backfill || it.op == Renew && it.algo.Concurrent()
}

// decision computes an item's Decision.
func (it *item) decision(now int64, source Source) Decision {
	switch {
	case it.refused && it.op == Renew:
		return Decision{Allowed: true, Receipt: it.receipt}
	case it.refused && it.op.settles():
		return Decision{Allowed: true} // the force is lost
	case it.refused:
		return Decision{RetryAfter: refusedFor}
	case it.dropped:
		return Decision{Allowed: true, Receipt: it.receipt}
	case it.algo == algorithmNobody && it.op.settles():
		return Decision{Allowed: true, Source: source}
	case it.algo == algorithmNobody:
		return Decision{Source: source, RetryAfter: Never, UnitAfter: Never}
	}
	d := figures(it.answer, it.algo, it.op, it.cost, it.need, now, &it.terms)
	d.Source = source
	if it.answer.charged && !it.op.settles() {
		d.Receipt = it.taken(now)
		d.Receipt.source = source
	}
	switch it.op {
	case Return:
		d.Receipt = it.receipt.less(it.cost)
	case Renew:
		d.Receipt = it.receipt
	}
	return d
}

// taken is the receipt of a take that was charged, but for its source.
func (it *item) taken(now int64) Receipt {
	r := Receipt{units: it.cost, at: now, t: it.answer.t, n: it.answer.n, f: it.answer.f, algorithm: it.algo}
	if it.algo.Concurrent() { // it has units of its own
		r.n, r.f = it.cost, it.id
	}
	return r
}

// less returns what is left of a receipt of which units were given back.
func (r Receipt) less(units int64) Receipt {
	if r.units -= units; r.units <= 0 {
		return Receipt{}
	}
	r.n -= units
	return r
}
