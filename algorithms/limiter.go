package algorithms

import (
	"context"
	"errors"
	"math"
	"time"
)

// A Limiter decides whether requests may proceed.
//
// Implementations are safe for concurrent use.
type Limiter interface {
	// Allow answers checks in place, at most 1 000 of them. It charges every
	// Take, or none of them.
	//
	// An error means that no decision could be made; it never means "denied".
	// An error that wraps [ErrInvalid] is the caller's mistake, and nothing
	// was charged. After any other error the charge may or may not have
	// happened, and no Decision of the call may be used.
	//
	// Allow does not touch or keep checks, or the bytes of their strings,
	// after it returns: a caller may reuse both at once. Checks must not be
	// shared between calls that run at the same time.
	Allow(ctx context.Context, checks []Check) error
}

// ErrInvalid is wrapped by every error that is the caller's mistake: a bad
// limit, a negative cost, an empty key, an unknown op, a mixture of takes and
// settlements. No failure mode applies to it; it never lets a request pass.
var ErrInvalid = errors.New("invalid check")

// Never is the wait that does not end: a cost above the burst, a limit of
// nobody, or an instant that a [time.Duration] cannot express.
const Never = time.Duration(math.MaxInt64)

// A Check is one question about one key, and the place of its answer.
type Check struct {
	// Policy is the scope of the key and part of the stored key: a letter,
	// then up to 63 letters, digits, '.', '_' or '-'. A suffix that begins
	// with '~' (such as "~candidate") names a keyspace beside the policy's.
	Policy string

	// Key says who is counted, e.g. "usr=42". It must not be empty. What
	// stands before the first '|' is the principal, whose counters share one
	// Redis Cluster slot. Package keyfunc builds such keys from requests.
	Key string

	// Limit says how much. It travels with every call, so a changed limit
	// acts at once, and units already spent carry over. The zero Limit is
	// an error.
	Limit Limit

	// Cost is in units of the limit, and never negative; 0 takes nothing and
	// is allowed unless the key is in debt. For Return it says how many
	// units of the receipt to give back. Reset and Renew do not read it.
	Cost int64

	// Op says what to do. The zero value is Take.
	Op Op

	// Fail says what a decision is worth that the shared limiter could not
	// make; the zero value is FailLocal. A [Fallback] reads it.
	Fail FailureMode

	// Exact asks the store itself: neither a remembered denial nor a lease
	// answers it.
	Exact bool

	// Decision is the answer. Return and Renew read its Receipt.
	Decision Decision
}

// An Op is what a [Check] asks for.
//
// A call holds takes and trials (Take, Trial, TrialInstead) or settlements
// (Return, Force, Grant, Reset, Renew), never both. Settlements are applied one by
// one, in order.
type Op uint8

const (
	// Take charges the cost if it fits, all or nothing with the other takes
	// of the call. Takes on the same stored key add up.
	Take Op = iota

	// Trial is a shadow limit: it is charged if it and every Take allow, and
	// never affects another check. It lives on a key of its own.
	Trial

	// TrialInstead is a candidate for the Take just before it in the slice:
	// a Trial whose condition leaves that Take out.
	TrialInstead

	// Return undoes (part of) the take whose receipt its Decision holds. It
	// never credits what has refilled or rolled away since, and writes
	// nothing then. The receipt that remains replaces the one it read.
	Return

	// Force charges even if the cost does not fit, into at most one burst of
	// debt: for a cost that is known late. Later requests wait it off.
	Force

	// Grant credits units, never above full: an operator's gift.
	Grant

	// Reset forgets the key.
	Reset

	// Renew begins the time anew for which a take of concurrent requests holds
	// its units, and leaves its receipt as it is. What has ended meanwhile is
	// held again even if it does not fit, up to the cap of a Force, since the
	// request does run: so a receipt must not be renewed after its Return.
	// Takes of other limits do not end by themselves: to renew them does
	// nothing.
	Renew

	opCount

	// backfill charges, as far as it fits, what was admitted without the store
	// at the instant in the receipt. It is for a Fallback alone.
	backfill = opCount
)

var opNames = [backfill + 1]string{"take", "trial", "trial-instead", "return", "force", "grant", "reset", "renew", "backfill"}

// String returns the name of the op, e.g. "trial-instead".
func (op Op) String() string {
	if op > backfill {
		return "unknown"
	}
	return opNames[op]
}

// settles reports whether op belongs in a call of settlements.
func (op Op) settles() bool { return op >= Return }

// reads reports whether op reads the receipt of a take.
func (op Op) reads() bool { return op == Return || op == Renew }

// A Source says who made a decision.
type Source uint8

const (
	// Undecided: nobody could; a failure mode answered. The figures of such
	// a decision mean nothing, but for RetryAfter of a denied one.
	Undecided Source = iota
	// Shared: the limiter that all instances share.
	Shared
	// Local: this process alone.
	Local
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

// A Decision answers a [Check].
//
// Figures are exact integers in units and whole microseconds. A Take's are
// those after its charge; if the call does not proceed, nothing was charged
// and they are those of the untouched state.
type Decision struct {
	// Allowed is this check's own verdict. A call proceeds only if every
	// Take is allowed: ask [Allowed].
	Allowed bool

	// Source says who decided.
	Source Source

	// Remaining is how many units could be taken at once, now. From a lease
	// (see [LeaseOptions]) it is a lower bound: what is left on the lease.
	Remaining int64

	// RetryAfter is how long until this cost would be admitted, if nobody
	// else spends: one microsecond earlier it is denied. 0 if allowed, Never
	// if waiting cannot help. It counts what earlier takes of the same call
	// ask from the same key.
	RetryAfter time.Duration

	// ResetAfter is how long until the full limit is back; 0 if it is.
	ResetAfter time.Duration

	// UnitAfter is how long until one unit can be taken; 0 if one can.
	UnitAfter time.Duration

	// Delay is how long to hold an admitted request before serving it. Only
	// leaky buckets delay.
	Delay time.Duration

	// Receipt is what Return needs to undo this take. It is the zero Receipt
	// unless the check was charged.
	Receipt Receipt
}

// A Receipt records what a take charged, and the state that it left. It is
// opaque, comparable, and good for the limiter that issued it.
type Receipt struct {
	units     int64
	at        int64 // the instant of the take, in µs
	t, n, f   int64 // the state that it left
	source    Source
	algorithm Algorithm
}

// Units returns how many units can still be returned; 0 for the zero Receipt.
func (r Receipt) Units() int64 { return r.units }

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

// A FailureMode says what a decision is worth that the shared limiter could
// not make.
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

// Must returns v, and panics if err is not nil. It is for constants of the
// program, at start:
//
//	limiter := algorithms.Must(algorithms.NewMemory(nil))
func Must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
