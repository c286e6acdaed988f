// The Check, its ops, and its failure modes.

package algorithms

import (
	"fmt"
	"strings"

	"github.com/penstock-go/penstock/algorithms/internal/step"
)

// A Check is one question about one key, and the place of its answer.
type Check struct {
	// Policy is the scope of the key; see [ValidatePolicy]. A suffix that
	// begins with '~' names a keyspace beside it.
	Policy string

	// Key says who is counted, e.g. "usr=42". It must not be empty. All counters
	// of the part before the first '|' share one Redis Cluster slot.
	Key string

	Limit Limit // the zero Limit is an error

	// Cost is in units, never negative. A cost of 0 takes nothing, and is
	// allowed unless the key is in debt. Reset and Renew ignore it.
	Cost int64

	Op       Op          // Take by default
	Fail     FailureMode // what answers while Redis cannot; a Memory ignores it
	Exact    bool        // asks the store: no remembered denial answers
	Decision Decision    // the answer; Return and Renew read its Receipt
}

// Allowed reports whether a call proceeds: whether every take, or its pair, is allowed.
func Allowed(checks []Check) bool {
	for i := range checks {
		c := &checks[i]
		if c.Decision.Allowed || !step.Op(c.Op).Decides() {
			continue
		}
		if i+1 == len(checks) || !step.Op(checks[i+1].Op).Depends() {
			return false
		}
	}
	return true
}

// An Op is the operation of a Check. A call holds either takes and trials, or settlements (Return, Force, Grant,
// Reset, Renew), which apply one by one, in order.
type Op uint8

const (
	// Take charges the cost if it fits, all or nothing with the other takes of the call. Takes on the same stored key
	// add up.
	Take = Op(step.Take)

	// TakeReserved is a Take on a limit that tenants share; the Take before it is the tenant's own share. If the share
	// fits, both are charged, and this take may use up to twice its burst. Otherwise this is an ordinary Take, and the
	// share is not charged.
	//
	// In every interval, a TokenBucket then admits at most twice its burst and rate × time; a window at most twice its
	// requests, and its requests again after each turn. If the shares have the limit's algorithm and window, and
	// together at most its requests and burst, a request that costs both the same is never denied within its share.
	//
	// The limit must be a TokenBucket, a FixedWindow, a calendar's or [Nobody]. A cost above the burst never fits.
	TakeReserved = Op(step.TakeReserved)

	// TakeElse is a Take that is charged only if the Take before it does not fit. The pair is allowed if one of the
	// two fits. All figures except RetryAfter are of this limit.
	TakeElse = Op(step.TakeElse)

	// Trial is charged if it fits and the call proceeds, and never affects another check, except trials behind it on
	// its own key. Give it another key than a take's.
	Trial = Op(step.Trial)

	// TrialInstead is a Trial whose condition ignores the take or the pair just before it in the slice: a candidate
	// for that limit.
	TrialInstead = Op(step.TrialInstead)

	// Return gives back units of the take whose receipt its Decision holds, because the request did not count or cost
	// less, and leaves the rest of the receipt there. It credits at most the units that are in use:
	//
	//	TokenBucket                  units in use now, whoever took them
	//	LeakyBucket                  only the newest take of the key
	//	SlidingWindowCounter         units of the take's window, until the window after it ends
	//	FixedWindow and calendars    units of the take's window, until it turns
	//	SlidingWindowLog             units that were admitted at the take's instant
	//	Concurrent                   the take's own units
	Return = Op(step.Return)

	// Force charges a cost that is known late, even if it does not fit, into at most one burst of debt.
	Force = Op(step.Force)

	// Grant credits units, never above full, and leaves the key's expiry alone. Only the algorithm of the limit
	// matters to it.
	Grant = Op(step.Grant)

	// Reset forgets the key.
	Reset = Op(step.Reset)

	// Renew restarts the time for which a Concurrent take holds its units, even if that time has passed and they no
	// longer fit. Do not renew a receipt after its Return. Other limits ignore a Renew.
	Renew = Op(step.Renew)
)

var opNames = [...]string{
	Take: "take", TakeReserved: "take-reserved", TakeElse: "take-else",
	Trial: "trial", TrialInstead: "trial-instead",
	Return: "return", Force: "force", Grant: "grant", Reset: "reset", Renew: "renew",
}

// String returns the name of the op, e.g. "trial-instead".
func (op Op) String() string {
	if int(op) >= len(opNames) {
		return "unknown"
	}
	return opNames[op]
}

// A FailureMode says what answers a check while Redis cannot.
type FailureMode uint8

const (
	// FailLocal lets this instance admit its share of the limit. It counts windows as
	// token buckets, which may admit almost twice the share. A limiter without a
	// local one lets the request pass.
	FailLocal  FailureMode = iota
	FailOpen               // lets the request pass
	FailClosed             // refuses the request: only the shared limiter may admit it
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

// Item is for this module's limiters.
func (c *Check) Item(it *step.Item) error {
	// An item that held another check needs Forget first.
	if !c.valid() {
		return c.mistakes()
	}
	l := &c.Limit.step
	it.Key = step.Key{Policy: c.Policy, Text: c.Key, Scope: l.Scope}
	it.Limit = *l // alone: an assignment of several values would copy it twice
	it.Op, it.Cost = step.Op(c.Op), c.units()
	it.Dropped, it.Refused, it.Answer = false, false, step.Answer{}
	if it.Op >= step.Return && it.Op.Reads() {
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
	return c.Limit.valid && c.Cost >= 0 && c.Op <= Renew && c.Key != "" && validPolicy(c.Policy) && (c.Op < Return || !c.foreignReceipt())
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

// mistakes returns an error that does not quote the key: errors are logged, and
// a key may name a person.
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
		add("the op %d is unknown", c.Op)
	}
	if row := c.Decision.Receipt.step.Row; c.foreignReceipt() && row == nil {
		add("the receipt is of another module's limiter")
	} else if c.foreignReceipt() {
		add("the receipt is of a %s, not of a %v", row.Name, c.Limit.Algorithm())
	}
	if err := c.Limit.Validate(); err != nil {
		add("%s", strings.TrimPrefix(err.Error(), ErrInvalid.Error()+": "))
	}
	return fmt.Errorf("algorithms: %w of policy %q: %s", ErrInvalid, c.Policy, strings.Join(mistakes, "; "))
}

// foreignReceipt reports whether c returns or renews a take of another
// algorithm, and so of another stored key, or of another module's limiter.
func (c *Check) foreignReceipt() bool {
	r, row := &c.Decision.Receipt.step, c.Limit.step.Row
	return step.Op(c.Op).Reads() && r.Units != 0 && r.Row != row && (row != step.Nobody || r.Row == nil)
}
