// The Limiter, and the errors that its callers distinguish.

package algorithms

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/penstock-go/penstock/algorithms/internal/step"
)

// A Limiter decides. It is safe for concurrent use.
type Limiter interface {
	// Allow answers checks in place, at most 1 000. It does not touch or keep checks, or the bytes of their strings,
	// after it returns: clone what you keep. Concurrent calls must not share checks.
	//
	// An error means that there is no decision; it never means "denied". If it wraps [ErrInvalid], nothing was
	// charged; otherwise something may have been.
	Allow(ctx context.Context, checks []Check) error
}

// ErrInvalid is wrapped by every error that the caller caused, such as a bad
// limit, a negative cost, or a clock outside of 1970 to 2252. No failure mode
// applies to it.
var ErrInvalid = step.ErrInvalid

// ErrUnavailable is wrapped by the error of a call that only Redis may answer,
// while it cannot: a check is FailClosed, or an operator settles.
var ErrUnavailable = errors.New("the shared limiter is not available")

// Never is an endless wait: no wait helps, or a time.Duration cannot express it.
const Never = time.Duration(math.MaxInt64)
