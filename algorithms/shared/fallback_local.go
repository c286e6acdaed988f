// Takes and trials without the primary.
//
// Each check that fails locally becomes a check for the memory, with this
// process's share of its limit. The others pass. The memory sees only a part of
// the call then, so one denial there denies the call, and a check that passes
// denies nothing.
//
// Receipts. A receipt names the algorithm that charged, and a limiter rejects a
// receipt of an algorithm that is not the limit's. The share of a window is a
// bucket, so the memory's receipts name a bucket where callers have a window.
// Callers get the receipt under the name of their window, with standIn in the
// place of the source; localCheck undoes that.

package shared

import (
	"context"
	"errors"
	"fmt"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/algorithms/internal/step"
)

// standIn is the source of a receipt that a bucket issued in place of the limit's
// own algorithm. Stores take such a receipt for another limiter's.
const standIn = uint8(algorithms.Local) + 1

// A part is the items of a call that the memory answers, and the checks that it
// answers them by.
type part struct {
	items  []*item
	checks []algorithms.Check
}

// decide decides a call of takes and trials without the primary, which failed
// with cause.
func (f *fallback) decide(ctx context.Context, c *call, cause error) error {
	for i := range c.items {
		if it := &c.items[i]; it.Op == step.Take && it.fail == algorithms.FailClosed {
			f.stats.refused.Add(1)
			return unavailable(cause)
		}
	}
	p := f.localPart(c)
	if len(p.items) == 0 {
		return nil
	}
	now := f.now()
	for j, it := range p.items {
		f.preload(ctx, it, &p.checks[j], now)
	}
	if err := f.memory.Allow(ctx, p.checks); err != nil {
		if err := callersFault(ctx, err); err != nil {
			return err
		}
		for _, it := range p.items {
			it.decision = algorithms.Decision{Allowed: true}
		}
		f.stats.passed.Add(uint64(len(p.items)))
		return nil
	}
	f.stats.local.Add(uint64(len(p.items)))
	p.answer()
	if !executed(cause) && algorithms.Allowed(p.checks) {
		for j, it := range p.items {
			f.owed.record(it, &p.checks[j], now)
		}
	}
	return nil
}

// executed reports whether a call that ended in err may have been charged, or a
// part of it.
func executed(err error) bool {
	return troubleOf(err).executed || errors.Is(err, errPartly)
}

// localPart returns the part of a call that fails locally. The other items pass,
// Undecided.
func (f *fallback) localPart(c *call) part {
	p := part{make([]*item, 0, len(c.items)), make([]algorithms.Check, 0, len(c.items))}
	passed := false
	for i := range c.items {
		it := &c.items[i]
		if it.Op == step.Take {
			passed = it.fail == algorithms.FailOpen
		}
		// A candidate for a take that passes has no take to stand in for.
		if it.fail != algorithms.FailLocal || it.Op == step.TrialInstead && passed {
			it.decision = algorithms.Decision{Allowed: true}
			f.stats.passed.Add(1)
			continue
		}
		check, _ := f.localCheck(it)
		p.add(it, check)
	}
	return p
}

func (p *part) add(it *item, check algorithms.Check) {
	p.items, p.checks = append(p.items, it), append(p.checks, check)
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

// answer gives the memory's answers to the items.
func (p *part) answer() {
	for j, it := range p.items {
		d := p.checks[j].Decision
		if r := d.Receipt.Step(); r.Units > 0 && r.Row != it.Limit.Row {
			r.Row, r.Source = it.Limit.Row, standIn
			d.Receipt = algorithms.ReceiptOf(r)
		}
		it.decision = d
	}
}

// preload charges the memory with its share of the use that the primary last
// reported of an item's key. So a key that is spent there is not full here.
func (f *fallback) preload(ctx context.Context, it *item, local *algorithms.Check, now int64) {
	f.seen.forgetAfter(it, now, func(used int64) {
		share := local.Limit.Step()
		f.raise(context.WithoutCancel(ctx), local, step.MulDivUp(used, share.Burst, it.Limit.Burst))
	})
}

// raise charges the memory until so many units of a check's key are in use.
func (f *fallback) raise(ctx context.Context, local *algorithms.Check, used int64) {
	c := [1]algorithms.Check{{Policy: local.Policy, Key: local.Key, Limit: local.Limit}}
	if f.memory.Allow(ctx, c[:]) != nil {
		return // the takes will fail as well, with this error
	}
	held := c[0].Limit.Burst() - c[0].Decision.Remaining
	c[0].Op, c[0].Cost = algorithms.Force, max(0, used-held)
	_ = f.memory.Allow(ctx, c[:])
}

func unavailable(cause error) error {
	if errors.Is(cause, algorithms.ErrUnavailable) {
		return fmt.Errorf("shared: %w", cause)
	}
	return fmt.Errorf("shared: %w: %w", algorithms.ErrUnavailable, cause)
}
