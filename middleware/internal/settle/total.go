// Package settle settles the units that requests have reserved, after the decision:
//
//	Reservations    the units that a request has reserved; settle_at_end.go settles them when
//	                the handler ends
//	Settler         makes settlements off the path of requests
//	Holds           how long requests held the units of a concurrent limit
//
// Package ratelimit opens the Reservations of an admitted request, and serves the
// request with them.
package settle

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/penstock-go/penstock/algorithms"
)

// ErrNotSettled is ratelimit.ErrNotSettled.
var ErrNotSettled = errors.New("ratelimit: not settled")

// Total is ratelimit.Settle.
func Total(ctx context.Context, total int64, policies ...string) error {
	if total < 0 {
		return fmt.Errorf("%w: the total %d is negative", ErrNotSettled, total)
	}
	var errs []error
	found := make([]string, 0, 4)
	for r, ok := ctx.Value(contextKey{}).(*Reservations); ok; r, ok = r.Context.Value(contextKey{}).(*Reservations) {
		var err error
		if found, err = r.settle(total, policies, found); err != nil {
			errs = append(errs, err)
		}
	}
	for _, name := range policies {
		if !slices.Contains(found, name) {
			errs = append(errs, fmt.Errorf("%w: policy %q has no reservation for this request", ErrNotSettled, name))
		}
	}
	if len(policies) == 0 && len(found) == 0 {
		errs = append(errs, fmt.Errorf("%w: no policy with a Cost has a reservation for this request", ErrNotSettled))
	}
	return errors.Join(errs...)
}

// settle settles the named policies, or all that have a Cost. It appends the
// names of the policies that it has found. If several Middlewares have a policy
// of one name, the innermost policy settles.
func (r *Reservations) settle(total int64, policies, found []string) ([]string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var errs []error
	for i, outer := 0, len(found); i < len(r.all); i++ {
		one := &r.all[i]
		name := one.policy.Name
		if !one.policy.Priced || len(policies) > 0 && !slices.Contains(policies, name) || slices.Contains(found[:outer], name) {
			continue
		}
		if !slices.Contains(found, name) {
			found = append(found, name)
		}
		err := r.settleOne(one, total)
		if one.check.Op == algorithms.TrialInstead && errors.Is(err, errCannotSettle) {
			continue // the policy's own limit settles; a candidate changes nothing
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%w: policy %q: %w", ErrNotSettled, name, err))
		}
	}
	return found, errors.Join(errs...)
}

var (
	errEnded        = errors.New("the handler has returned")
	errCannotSettle = errors.New("its algorithm can neither return nor force units")
	errBusy         = errors.New("too many settlements are waiting")
)

func (r *Reservations) settleOne(one *reservation, total int64) error {
	switch {
	case r.ended:
		return errEnded
	case one.concurrent() || one.check.Limit.Algorithm() == leakyBucket:
		return errCannotSettle
	}
	one.total = max(one.total, total)
	if one.policy.ChargeIf == nil && !r.force(one) {
		return errBusy
	}
	return nil
}
