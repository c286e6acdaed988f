// Calls that the memory answers: takes and trials without the primary, and
// settlements.
//
// Each check that fails locally becomes a check for the memory, with this
// process's share of its limit. The other checks pass. Then the memory sees
// only a part of the call, so one denial there denies the call, and a check
// that passes denies nothing.
//
// Receipts. A receipt names the algorithm that charged, and a limiter rejects a
// receipt of another algorithm than the limit's. The share of a window is a
// bucket, so the memory's receipts name a bucket where callers have a window.
// Callers get the receipt under the name of their window, with standIn in the
// place of the source; localCheck undoes that.
//
//	| settlement                 | with the primary             | without it         |
//	|----------------------------|------------------------------|--------------------|
//	| Return, Renew of a shared  | the primary                  | dropped            |
//	| receipt                    |                              |                    |
//	| Return, Renew of a local   | the memory                   | the memory         |
//	| receipt                    |                              |                    |
//	| Force                      | the primary                  | the memory, and    |
//	|                            |                              | the primary's debt |
//	| Grant, Reset               | the primary, then the memory | an error           |
//
// Grants and resets fail, so that an operator sees it.

package shared

import (
	"context"
	"errors"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/algorithms/internal/step"
)

// standIn is the source of a receipt that a bucket issued in place of the
// limit's own algorithm. Stores treat such a receipt as another limiter's.
const standIn = uint8(algorithms.Local) + 1

// A part is the items of a call that the memory answers, and the checks for the
// memory.
type part struct {
	items  []*item
	checks []algorithms.Check
	spent  []seenUse // of the same places: windows that stay spent; otherwise zero
}

// decide decides a call of takes and trials without the primary, which failed
// with cause.
func (f *fallback) decide(ctx context.Context, c *call, cause error) error {
	for i := range c.items {
		if it := &c.items[i]; it.Op == step.Take && it.fail == algorithms.FailClosed {
			f.stats.refused.Add(1)
			return f.refuse(ctx, cause)
		}
	}
	p := f.localPart(c)
	now := f.now()
	p.spent = make([]seenUse, len(p.items))
	for j, it := range p.items {
		if use, spent := f.seen.spent(it, now); spent {
			p.spent[j] = use
			if it.Cost > 0 {
				p.checks[j].Limit = algorithms.Nobody()
			}
			continue
		}
		f.preload(ctx, it, &p.checks[j], now)
	}
	switch answered, err := f.answer(ctx, &p); {
	case err != nil:
		return err
	case !answered:
		f.stats.passed.Add(uint64(len(p.items)))
		return nil
	}
	for j, it := range p.items {
		if use := &p.spent[j]; use.used > 0 {
			it.waitFor(use, now)
		}
	}
	f.stats.local.Add(uint64(len(p.items)))
	if !executed(cause) && algorithms.Allowed(p.checks) {
		for j, it := range p.items {
			f.owed.record(it, &p.checks[j], now)
		}
	}
	return nil
}

// waitFor replaces figures, because the item's window is spent.
func (it *item) waitFor(use *seenUse, now int64) {
	d := &it.decision
	d.Remaining, d.UnitAfter, d.ResetAfter = 0, step.Until(use.unit, now), step.Until(use.reset, now)
	if !d.Allowed && it.Need <= it.Limit.Most {
		d.RetryAfter = d.UnitAfter
	}
}

// executed reports whether Redis may have charged a call that ended in err, or
// a part of it.
func executed(err error) bool {
	if err == errOpen { // of most calls in an outage; troubleOf takes longer than their decisions
		return false
	}
	return troubleOf(err).executed || errors.Is(err, errPartly)
}

// localPart returns the part of a call that fails locally. The other items pass,
// Undecided.
func (f *fallback) localPart(c *call) part {
	p := part{items: make([]*item, 0, len(c.items)), checks: make([]algorithms.Check, 0, len(c.items))}
	passed := false
	for i := range c.items {
		it := &c.items[i]
		if it.Op == step.Take {
			passed = it.fail == algorithms.FailOpen
		}
		// A candidate needs the take that it replaces; without it, it passes.
		if it.fail != algorithms.FailLocal || it.Op == step.TrialInstead && passed {
			it.admit()
			f.stats.passed.Add(1)
			continue
		}
		f.add(&p, it)
	}
	return p
}

// add adds an item to a part. The item passes if the memory cannot read its
// receipt.
func (f *fallback) add(p *part, it *item) {
	if check, reads := f.localCheck(it); reads {
		p.items, p.checks = append(p.items, it), append(p.checks, check)
	} else {
		it.admit()
	}
}

// localCheck returns the check of an item for the memory, with this process's
// share of the limit. It reports whether the memory can read the item's receipt:
// it cannot if the share has another algorithm now.
func (f *fallback) localCheck(it *item) (check algorithms.Check, reads bool) {
	share, r := f.share(&it.Limit), it.Receipt
	reads = !it.Op.Reads() || r.Units == 0 || (r.Source == standIn) == (share.Row != it.Limit.Row)
	if r.Source == standIn {
		r.Row, r.Source = share.Row, uint8(algorithms.Local)
	}
	return algorithms.Check{
		Policy: it.Key.Policy, Key: it.Key.Text, Limit: algorithms.LimitOf(share),
		Op: algorithms.Op(it.Op), Cost: it.Cost,
		Decision: algorithms.Decision{Receipt: algorithms.ReceiptOf(r)},
	}, reads
}

// answer gives the memory's answers to the items of a part. If the memory fails,
// the items pass, unless the caller is the reason.
func (f *fallback) answer(ctx context.Context, p *part) (answered bool, err error) {
	if len(p.items) == 0 {
		return false, nil
	}
	if err := f.memory.Allow(ctx, p.checks); err != nil {
		for _, it := range p.items {
			it.admit()
		}
		return false, callersFault(ctx, err)
	}
	for j, it := range p.items {
		d := p.checks[j].Decision
		if r := d.Receipt.Step(); r.Units > 0 && r.Row != it.Limit.Row {
			r.Row, r.Source = it.Limit.Row, standIn
			d.Receipt = algorithms.ReceiptOf(r)
		}
		it.decision = d
	}
	return true, nil
}

// preload charges the memory with its share of the use that the primary last
// reported of an item's key. So a key that is spent there is not full here.
func (f *fallback) preload(ctx context.Context, it *item, local *algorithms.Check, now int64) {
	f.seen.forgetAfter(it, now, func(used int64) {
		ctx := context.WithoutCancel(ctx)
		c := [1]algorithms.Check{{Policy: local.Policy, Key: local.Key, Limit: local.Limit}}
		if f.memory.Allow(ctx, c[:]) != nil {
			return // the takes will fail as well, with this error
		}
		burst := c[0].Limit.Burst()
		held := burst - c[0].Decision.Remaining
		c[0].Op, c[0].Cost = algorithms.Force, max(0, step.MulDivUp(used, burst, it.Limit.Burst)-held)
		_ = f.memory.Allow(ctx, c[:])
	})
}

// settle applies a call of settlements.
func (f *fallback) settle(ctx context.Context, c *call) error {
	var buf [8]int
	others := buf[:0]
	var local part
	for i := range c.items {
		if it := &c.items[i]; it.issuedHere() {
			f.add(&local, it)
		} else {
			others = append(others, i)
		}
	}
	if len(others) == len(c.items) {
		return f.settleShared(ctx, c)
	}
	if err := f.settleLocally(ctx, &local, false); err != nil || len(others) == 0 {
		return err
	}
	sub := c.sub(others)
	defer sub.free()
	err := f.settleShared(ctx, sub)
	for j, i := range others {
		c.items[i].decision = sub.items[j].decision
	}
	return err
}

// issuedHere reports whether an item reads a receipt that the memory issued.
func (it *item) issuedHere() bool {
	return it.Op.Reads() && (it.Receipt.Source == uint8(algorithms.Local) || it.Receipt.Source == standIn)
}

// settleShared lets the primary settle a call. Without the primary, forces go
// to the memory, grants and resets fail, and other settlements are dropped.
func (f *fallback) settleShared(ctx context.Context, c *call) error {
	cause := f.ask(ctx, c)
	if cause == nil {
		f.seen.note(c, f.now)
		f.credited(c)
		return nil
	}
	if err := callersFault(ctx, cause); err != nil {
		return err
	}
	var forces part
	var failed error
	for i := range c.items {
		it := &c.items[i]
		switch {
		case it.Op == step.Force && it.fail != algorithms.FailOpen:
			f.add(&forces, it)
			continue
		case it.Op == step.Grant || it.Op == step.Reset:
			failed = f.refuse(ctx, cause)
		}
		it.admit()
	}
	return errors.Join(failed, f.settleLocally(ctx, &forces, !executed(cause)))
}

// settleLocally lets the memory settle. If owe is true, the ledger notes the
// units that the items charge.
func (f *fallback) settleLocally(ctx context.Context, p *part, owe bool) error {
	now := f.now()
	answered, err := f.answer(ctx, p)
	if !answered {
		return err
	}
	for j, it := range p.items {
		switch {
		case it.Op == step.Return:
			f.owed.unrecord(it, now)
		case owe:
			f.owed.record(it, &p.checks[j], now)
		}
	}
	return nil
}

// credited repeats here the grants and resets that the primary has applied. It
// forgets the seen use and the debts of their keys, and credits the keys in the
// memory, so that units of one outage do not count in the next. It does not
// credit running requests, because they return their units where they took
// them.
func (f *fallback) credited(c *call) {
	for i := range c.items {
		it := &c.items[i]
		if it.Op != step.Grant && it.Op != step.Reset {
			continue
		}
		f.seen.forgetAfter(it, f.now(), func(int64) {})
		f.owed.forget(it)
		if !it.Limit.Row.Owed {
			continue
		}
		check, _ := f.localCheck(it)
		check.Cost, _ = step.MulDiv(it.Cost, check.Limit.Burst(), it.Limit.Burst)
		_ = f.memory.Allow(context.Background(), []algorithms.Check{check})
	}
}
