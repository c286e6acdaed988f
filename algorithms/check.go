// The Check, its ops, and its failure modes.

package algorithms

import (
	"fmt"
	"strings"

	"github.com/penstock-go/penstock/algorithms/internal/step"
)

// A Check is one question about one key, and the place of its answer.
type Check struct {
	// Policy is the scope of the key and part of the stored key: a letter,
	// then up to 63 letters, digits, '.', '_' or '-'. A suffix that begins
	// with '~' (such as "~candidate") names a keyspace beside the policy's.
	Policy string

	// Key says who is counted, e.g. "usr=42". It must not be empty. The part
	// before the first '|' is the principal, whose counters share one Redis
	// Cluster slot. Package keyfunc builds such keys from requests.
	Key string

	// Limit says how much. It travels with every call, so a changed limit
	// acts at once, and units already spent carry over. The units of a bucket
	// drain at the rate of the latest call, counted from the last take; the
	// package documentation has the bounds. The zero Limit is an error.
	Limit Limit

	// Cost is in units of the limit, and never negative; 0 takes nothing and
	// is allowed unless the key is in debt. For Return it says how many
	// units of the receipt to give back. Reset and Renew do not read it.
	Cost int64

	// Op says what to do. The zero value is Take.
	Op Op

	// Fail says what answers the check while the shared limiter cannot; the
	// zero value is FailLocal. Only limiters with a fallback read it, as those
	// of package shared do.
	Fail FailureMode

	// Exact asks the store itself: neither a remembered denial nor a lease
	// answers it.
	Exact bool

	// Decision is the answer. Return and Renew read its Receipt.
	Decision Decision
}

// Allowed reports whether a call proceeds: whether every Take among checks is
// allowed. It is the only test a caller needs; trials do not count.
func Allowed(checks []Check) bool {
	for i := range checks {
		if checks[i].Op == Take && !checks[i].Decision.Allowed {
			return false
		}
	}
	return true
}

// An Op is what a [Check] asks for.
//
// A call holds takes and trials (Take, Trial, TrialInstead) or settlements
// (Return, Force, Grant, Reset, Renew), never both. Settlements are applied one
// by one, in order.
type Op uint8

const (
	// Take charges the cost if it fits, all or nothing with the other takes
	// of the call. Takes on the same stored key add up.
	Take = Op(step.Take)

	// Trial is a shadow limit: it is charged if it and every Take allow, and
	// never affects another check. It lives on a key of its own.
	Trial = Op(step.Trial)

	// TrialInstead is a candidate for the Take just before it in the slice:
	// a Trial whose condition leaves that Take out.
	TrialInstead = Op(step.TrialInstead)

	// Return undoes all or part of the take whose receipt its Decision holds.
	// It never credits units that have refilled or rolled out of the window
	// since. It credits nothing after a Reset or a repair of the clock, and
	// nothing to a bucket at another rate than the take's if others have used
	// the bucket since. The package documentation bounds what a rate that
	// changes back may credit. If a Return credits nothing, it writes nothing.
	// The receipt that remains replaces the one it read.
	Return = Op(step.Return)

	// Force charges even if the cost does not fit, into at most one burst of
	// debt: for a cost that is known late. Later requests wait it off. Under a
	// limit that was lowered far, it first cuts what is in use to twice the
	// lower burst.
	Force = Op(step.Force)

	// Grant credits units, never above full: an operator's gift.
	Grant = Op(step.Grant)

	// Reset forgets the key: its units, and the receipts of its takes. A limiter
	// remembers the Reset until the units could not count any more.
	Reset = Op(step.Reset)

	// Renew restarts the time for which a take of concurrent requests holds its
	// units, and leaves its receipt as it is. Units that have ended meanwhile
	// are held again even if they do not fit, up to the cap of a Force, because
	// the request still runs. So a receipt must not be renewed after its
	// Return. Takes of other limits do not end by themselves: renewing them
	// does nothing.
	Renew = Op(step.Renew)
)

var opNames = [...]string{
	Take: "take", Trial: "trial", TrialInstead: "trial-instead",
	Return: "return", Force: "force", Grant: "grant", Reset: "reset", Renew: "renew",
}

// String returns the name of the op, e.g. "trial-instead".
func (op Op) String() string {
	if int(op) >= len(opNames) {
		return "unknown"
	}
	return opNames[op]
}

// A FailureMode says what answers a check that the shared limiter could not
// decide.
type FailureMode uint8

const (
	// FailLocal lets a local limiter answer; where there is none, the request
	// passes.
	FailLocal FailureMode = iota
	// FailOpen lets the request pass.
	FailOpen
	// FailClosed refuses the request: only the shared limiter may admit.
	FailClosed
)

// String returns "local", "open" or "closed".
func (m FailureMode) String() string {
	switch m {
	case FailOpen:
		return "open"
	case FailClosed:
		return "closed"
	default:
		return "local"
	}
}

// Item writes the check into it as steps use it, or returns every mistake of
// the check at once. The item may have been another check's if its Forget was
// called since. It keeps no memory of the caller's except the strings of the key.
// Item is for this module's limiters.
func (c *Check) Item(it *step.Item) error {
	if !c.valid() {
		return c.mistakes()
	}
	l := &c.Limit.step
	it.Key = step.Key{Policy: c.Policy, Text: c.Key, Scope: l.Scope}
	it.Limit, it.Op, it.Cost = *l, step.Op(c.Op), c.units()
	it.Dropped, it.Refused, it.Answer = false, false, step.Answer{}
	if it.Op.Reads() {
		it.Receipt = c.Decision.Receipt.step
	} else if it.Receipt != (step.Receipt{}) {
		it.Receipt = step.Receipt{}
	}
	if l.Row.TakesApart {
		it.ID = step.NextID()
	}
	return nil
}

func (c *Check) valid() bool {
	return c.Limit.valid && c.Cost >= 0 && c.Op <= Renew && c.Key != "" && validPolicy(c.Policy) && !c.foreignReceipt()
}

// units is the cost that a store sees. A cost above MaxUnits exceeds every
// burst, and is more than any state can hold.
func (c *Check) units() int64 {
	switch c.Op {
	case Return:
		return min(c.Cost, c.Decision.Receipt.step.Units)
	case Renew:
		return c.Decision.Receipt.step.Units
	default:
		return min(c.Cost, step.MaxUnits)
	}
}

// mistakes returns an error without the key itself: errors are logged, and a key
// may name a person.
func (c *Check) mistakes() error {
	var mistakes []string
	add := func(format string, args ...any) { mistakes = append(mistakes, fmt.Sprintf(format, args...)) }
	if !validPolicy(c.Policy) {
		add("the policy's name is not %s", policyForm)
	}
	if c.Key == "" {
		add("the key is empty")
	}
	if c.Cost < 0 {
		add("the cost %d is negative", c.Cost)
	}
	if c.Op > Renew {
		add("there is no op %d", c.Op)
	}
	if c.foreignReceipt() {
		add("the receipt is of a %s, not of a %v", c.Decision.Receipt.step.Row.Name, c.Limit.Algorithm())
	}
	if err := c.Limit.Validate(); err != nil {
		add("%s", strings.TrimPrefix(err.Error(), ErrInvalid.Error()+": "))
	}
	return fmt.Errorf("algorithms: %w of policy %q: %s", ErrInvalid, c.Policy, strings.Join(mistakes, "; "))
}

// foreignReceipt reports whether c returns or renews a take of another
// algorithm, and so of another stored key.
func (c *Check) foreignReceipt() bool {
	r, row := &c.Decision.Receipt.step, c.Limit.step.Row
	return c.Op >= Return && step.Op(c.Op).Reads() && r.Units > 0 && r.Row != row && row != step.Nobody
}
