// The Limiter, and the errors that its callers tell apart.

package algorithms

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/penstock-go/penstock/algorithms/internal/step"
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
// settlements, a clock outside of the years that the arithmetic covers. No
// failure mode applies to it; it never lets a request pass.
var ErrInvalid = step.ErrInvalid

// ErrUnavailable is wrapped by the error of a call that only the shared limiter
// may answer while it cannot: a check is FailClosed, or is an operator's
// settlement. Nothing was charged locally. If the call was sent and its answer
// was lost, the shared limiter may have charged it. The error wraps the cause.
var ErrUnavailable = errors.New("the shared limiter is not available")

// Never is the wait that does not end: for a cost above the burst, for the limit
// Nobody, and for an instant that a [time.Duration] cannot express.
const Never = time.Duration(math.MaxInt64)
