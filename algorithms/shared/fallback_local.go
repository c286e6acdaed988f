// Calls that the memory answers: takes and trials without the primary.
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

package shared

import (
	"context"

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
}

// decide decides a call of takes and trials without the primary, which failed
// with cause.
func (f *fallback) decide(ctx context.Context, c *call, cause error) error {
	for i := range c.items {
		if it := &c.items[i]; it.Op.Takes() && it.fail == algorithms.FailClosed {
			f.stats.refused.Add(1)
			return refuse(cause)
		}
	}
	if !c.ahead && f.views.recall(c, f.views.now(), false) {
		f.stats.local.Add(uint64(len(c.items)))
		return nil
	}
	p := f.localPart(c)
	f.seed(ctx, &p)
	if c.ahead {
		for j := range p.checks {
			p.checks[j].Op = algorithms.Force
		}
	}
	switch answered, err := f.answer(ctx, &p); {
	case err != nil:
		return err
	case !answered:
		f.stats.passed.Add(uint64(len(p.items)))
		return nil
	}
	f.stats.local.Add(uint64(len(p.items)))
	if algorithms.Allowed(p.checks) {
		f.record(&p)
	}
	return nil
}

// record notes the units of items that the memory has charged. Units that the
// primary has perhaps charged are unknown. It is owed the others.
func (f *fallback) record(p *part) {
	now := f.now()
	for j, it := range p.items {
		charged := it.decision.Receipt.Units() > 0 || p.checks[j].Op == algorithms.Force && it.decision.Source == algorithms.Local
		switch owed := charged && it.Cost > 0 && it.Limit.Row.Owed; {
		case !owed:
			it.unknown = false
		case it.unknown:
			f.stats.unknown.Add(it.Cost)
		default:
			f.ledger.record(it, p.checks[j].Limit.Step(), now)
		}
	}
}

// localPart returns the part of a call that fails locally. The other items pass,
// Undecided.
func (f *fallback) localPart(c *call) part {
	p := part{items: make([]*item, 0, len(c.items)), checks: make([]algorithms.Check, 0, len(c.items))}
	passed := false
	for i := range c.items {
		it := &c.items[i]
		if it.Op.Takes() {
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

// share returns the part of a limit that this process admits alone.
func (f *fallback) share(whole *step.Limit) step.Limit { return whole.Share(1, f.instances.Load()) }

// seed lets the shares of a part begin with their part of the units in use, as the views have them. It
// rounds down, and leaves out one unit, of which a part may have drained: at most a whole share is in use then,
// and a client that keeps to its limit finds room.
func (f *fallback) seed(ctx context.Context, p *part) {
	for j, it := range p.items {
		used := f.views.startsWith(it)
		if used < 2 {
			continue
		}
		check := &p.checks[j]
		one := []algorithms.Check{{Policy: check.Policy, Key: check.Key, Limit: check.Limit}}
		if f.memory.Allow(ctx, one) != nil {
			return
		}
		share := check.Limit.Burst()
		if more := min((used-1)/f.instances.Load(), share) - (share - one[0].Decision.Remaining); more > 0 {
			one[0].Op, one[0].Cost = algorithms.Force, more
			_ = f.memory.Allow(ctx, one)
		}
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
		Op: algorithms.Op(it.Asked()), Cost: it.Cost,
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
		it.decision = p.checks[j].Decision
		if r := it.decision.Receipt.Step(); r.Units > 0 && r.Row != it.Limit.Row {
			r.Row, r.Source = it.Limit.Row, standIn
			it.decision.Receipt = algorithms.ReceiptOf(r)
		}
	}
	return true, nil
}
