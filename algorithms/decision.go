// The Decision, its source, and the receipt of a take.

package algorithms

import (
	"time"

	"github.com/penstock-go/penstock/algorithms/internal/step"
)

// A Source says who made a decision.
type Source uint8

const (
	// Undecided: a failure mode answered. The figures mean nothing, except
	// RetryAfter of a denial.
	Undecided Source = iota
	Shared           // the limiter that all instances share
	Local            // this process alone
)

// String returns "undecided", "shared" or "local".
func (s Source) String() string {
	switch s {
	case Shared:
		return "shared"
	case Local:
		return "local"
	default:
		return "undecided"
	}
}

// A Decision answers a Check. Figures are exact, in units and whole
// microseconds, after the charge. If the call does not proceed, they describe
// the untouched state.
type Decision struct {
	Allowed   bool   // this check's own verdict; [Allowed] says whether the call proceeds
	Source    Source // who decided
	Remaining int64  // units that could be taken now

	// RetryAfter is how long until this cost would be admitted if no other caller
	// spends: 0 if allowed, Never if waiting cannot help. It includes earlier
	// takes of the call on the same key.
	RetryAfter time.Duration

	ResetAfter time.Duration // until the full limit is back
	UnitAfter  time.Duration // until one unit can be taken
	Delay      time.Duration // how long to hold an admitted request of a leaky bucket
	Receipt    Receipt       // lets Return undo this take; zero unless the check was charged
}

// decide writes figures into d, in place, because a Decision is large. It leaves
// the receipt to the caller.
func (d *Decision) decide(f step.Figures, source Source) {
	if f.Undecided {
		source = Undecided
	}
	d.Allowed, d.Source, d.Remaining = f.Allowed, source, f.Remaining
	d.RetryAfter, d.ResetAfter, d.UnitAfter, d.Delay = f.RetryAfter, f.ResetAfter, f.UnitAfter, f.Delay
}

// A Receipt records a charge, and the state that it left. It is comparable, and
// valid for the limiter that issued it. Return it once: a copy that is returned
// again credits units of other requests.
type Receipt struct{ step step.Receipt }

// Units returns how many units can still be returned; 0 for the zero Receipt.
func (r Receipt) Units() int64 { return r.step.Units }

// NewReceipt returns a receipt for a limiter of your own: the units that a take charged, and three numbers of the
// state it left. Limiters of this module reject it as [ErrInvalid] unless it has no units.
func NewReceipt(units, t, n, f int64) Receipt {
	return Receipt{step.Receipt{Units: units, T: t, N: n, F: f}}
}

// State returns the numbers of NewReceipt.
func (r Receipt) State() (units, t, n, f int64) {
	return r.step.Units, r.step.T, r.step.N, r.step.F
}

// Step is for this module's limiters.
func (r Receipt) Step() step.Receipt { return r.step }

// ReceiptOf is for this module's limiters.
func ReceiptOf(r step.Receipt) Receipt { return Receipt{r} }
