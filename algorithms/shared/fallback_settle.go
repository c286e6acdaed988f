// Settlements, with the primary and without.
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
// Grants and resets fail because an operator wants to know that they had no
// effect.

package shared

import (
	"context"
	"errors"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/algorithms/internal/step"
)

// settle applies a call of settlements.
func (f *fallback) settle(ctx context.Context, c *call) error {
	if !c.anyIssuedHere() {
		return f.settleShared(ctx, c)
	}
	var others []int
	var local []*item
	for i := range c.items {
		if it := &c.items[i]; it.issuedHere() {
			local = append(local, it)
		} else {
			others = append(others, i)
		}
	}
	if err := f.settleLocally(ctx, local, false); err != nil || others == nil {
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

func (c *call) anyIssuedHere() bool {
	for i := range c.items {
		if c.items[i].issuedHere() {
			return true
		}
	}
	return false
}

// issuedHere reports whether an item reads a receipt that the memory issued.
func (it *item) issuedHere() bool {
	return it.Op.Reads() && (it.Receipt.Source == uint8(algorithms.Local) || it.Receipt.Source == standIn)
}

// settleShared lets the primary settle a call. Without the primary, forces go to
// the memory, grants and resets fail, and the rest is dropped.
func (f *fallback) settleShared(ctx context.Context, c *call) error {
	cause := f.ask(ctx, c)
	if cause == nil {
		f.credited(c)
		return nil
	}
	if err := callersFault(ctx, cause); err != nil {
		return err
	}
	var forces []*item
	var failed error
	for i := range c.items {
		it := &c.items[i]
		switch {
		case it.Op == step.Force && it.fail != algorithms.FailOpen:
			forces = append(forces, it)
			continue
		case it.Op == step.Grant || it.Op == step.Reset:
			failed = unavailable(cause)
		}
		it.admit()
	}
	return errors.Join(failed, f.settleLocally(ctx, forces, !executed(cause)))
}

// settleLocally lets the memory settle some items, and drops those that it cannot
// settle. If owe is true, the primary is owed the units that they charge.
func (f *fallback) settleLocally(ctx context.Context, items []*item, owe bool) error {
	var p part
	for _, it := range items {
		if check, reads := f.localCheck(it); reads {
			p.add(it, check)
		} else {
			it.admit()
		}
	}
	if len(p.items) == 0 {
		return nil
	}
	now := f.now()
	if err := f.memory.Allow(ctx, p.checks); err != nil {
		if err := callersFault(ctx, err); err != nil {
			return err
		}
		for _, it := range p.items {
			it.admit()
		}
		return nil
	}
	p.answer()
	for j, it := range p.items {
		switch {
		case it.Op == step.Return:
			f.owed.unrecord(it)
		case owe:
			f.owed.record(it, &p.checks[j], now)
		}
	}
	return nil
}

// credited follows grants and resets that the primary has applied. It forgets the
// seen use and the debts of their keys, and credits the keys in the memory, so that
// units of one outage do not count in the next. Units of running requests stay,
// because they are returned where they were taken.
func (f *fallback) credited(c *call) {
	for i := range c.items {
		it := &c.items[i]
		if it.Op != step.Grant && it.Op != step.Reset {
			continue
		}
		f.seen.forget(it)
		f.owed.forget(it)
		if !it.Limit.Row.Owed {
			continue
		}
		check, _ := f.localCheck(it)
		check.Cost, _ = step.MulDiv(it.Cost, check.Limit.Burst(), it.Limit.Burst)
		_ = f.memory.Allow(context.Background(), []algorithms.Check{check})
	}
}
