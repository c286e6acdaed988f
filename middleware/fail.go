// The verdict on a request that the limiter could not decide: Policy.Fail.
//
// The limiter of package shared applies Fail first (fallback_local.go). What is left are errors of FailClosed checks,
// of invalid checks, of requests that have ended, and of limiters that do not know Fail.

package ratelimit

import (
	"errors"
	"net/http"
	"slices"

	"github.com/penstock-go/penstock/algorithms"
)

func (e *evidence) fail(v *Verdict) refusal {
	v.RetryAfter = 0
	switch {
	case errors.Is(e.err, algorithms.ErrInvalid):
		v.Degraded = false
		return refusal{err: e.err, status: http.StatusInternalServerError, outcome: OutcomeInvalid}
	case e.ended:
		// The client has hung up. Serving the request would be a way around the
		// limits for clients that hang up at once.
		v.Degraded = false
		return refusal{err: e.err, status: http.StatusServiceUnavailable, outcome: OutcomeCancelled}
	case slices.ContainsFunc(e.checks, func(c algorithms.Check) bool { return c.Fail == algorithms.FailClosed }): // no shadow's
		return refusal{err: e.err, status: http.StatusServiceUnavailable, outcome: OutcomeFailedClosed}
	}
	v.Allowed, v.Err = true, e.err
	for i := range v.Policies {
		v.Policies[i].Decision.Allowed = true
	}
	return refusal{err: e.err, outcome: OutcomeFailedOpen}
}
