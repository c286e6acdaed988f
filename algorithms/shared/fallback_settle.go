// Settlements, with the primary and without it.
//
//	| settlement                 | with the primary             | without it         |
//	|----------------------------|------------------------------|--------------------|
//	| Return of a shared receipt | the debt of its key, or the  | the debt, or kept, |
//	|                            | primary                      | or an error        |
//	| Renew of a shared receipt  | the primary                  | dropped            |
//	| Return, Renew of a local   | the memory                   | the memory         |
//	| receipt                    |                              |                    |
//	| Force                      | the primary                  | the memory, and    |
//	|                            |                              | the primary's debt |
//	| Grant, Reset               | the primary                  | an error           |
//
// Grants and resets fail, so that an operator sees it. fallback_returns.go says which
// Returns are kept.

package shared

import (
	"context"
	"errors"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/algorithms/internal/step"
	"github.com/penstock-go/penstock/algorithms/shared/internal/trouble"
)

// settle applies a call of settlements, except those that views have made. The memory
// settles what it has admitted. Returns of units that are owed make the debt smaller: the
// primary would receive them before the debt, and could find fewer units to return. The
// primary settles the rest.
func (f *fallback) settle(ctx context.Context, c *call) error {
	var local part
	others, now := false, f.now()
	for i := range c.items {
		switch it := &c.items[i]; {
		case issuedHere(it):
			f.add(&local, it)
		case it.Dropped:
		case it.undoes(now) && f.ledger.withdraw(it, now):
			it.madeHere()
		default:
			others = true
		}
	}
	settled, err := f.answer(ctx, &local)
	for _, it := range local.items {
		if settled && it.Op == step.Return {
			f.ledger.unrecord(it, now)
		}
	}
	if err == nil && others {
		err = f.settleShared(ctx, c)
	}
	return err
}

// issuedHere reports whether an item reads a receipt that the memory issued.
func issuedHere(it *item) bool {
	return it.Op.Reads() && (it.Receipt.Source == uint8(algorithms.Local) || it.Receipt.Source == standIn)
}

// settleShared lets the primary settle a call. Without the primary, forces go to the
// memory, Returns are kept or fail, grants and resets fail, and renewals are dropped.
func (f *fallback) settleShared(ctx context.Context, c *call) error {
	cause := f.primary.allow(ctx, c)
	if cause == nil {
		for i := range c.items {
			if it := &c.items[i]; it.Op == step.Grant || it.Op == step.Reset {
				f.ledger.forget(it)
			}
		}
		return nil
	}
	if errors.Is(cause, algorithms.ErrInvalid) {
		return cause
	}
	var forces part
	var failed error
	gone := ctx.Err() // Returns are kept all the same: the units would not come back otherwise
	for i := range c.items {
		it := &c.items[i]
		switch {
		case it.Dropped:
			continue
		case it.returnsShared():
			why := cause
			if !it.unknown { // perhaps Redis has executed items of other slots
				why = trouble.ErrUnsent
			}
			if c.settled != nil && it.part == c.part || f.ledger.keep(it, why) {
				it.handOver()
				continue
			}
			failed = refuse(cause)
		case gone != nil:
			failed = gone
			continue
		case it.Op == step.Grant || it.Op == step.Reset:
			failed = refuse(cause)
		case it.Op == step.Force && it.fail != algorithms.FailOpen:
			f.add(&forces, it)
			continue
		}
		it.admit()
	}
	answered, err := f.answer(ctx, &forces)
	if answered {
		f.record(&forces)
	}
	if c.settled != nil {
		go f.follow(c, answered)
	}
	return errors.Join(failed, err)
}
