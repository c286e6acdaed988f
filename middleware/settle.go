package ratelimit

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/penstock-go/penstock/algorithms"
)

// ErrNotSettled is wrapped by the errors of [Settle]. If too many settlements
// waited, the next Settle or the end of the handler tries again.
var ErrNotSettled = errors.New("ratelimit: not settled")

// Settle corrects the cost of a request. total is its cost so far, in units of
// the limits: tokens, bytes, seconds of work. ctx is the request's context, or
// derived from it. Without names, Settle corrects all policies that have a
// Cost.
//
// Until the handler returns, any goroutine may call Settle repeatedly. The
// largest total counts. Units beyond the reservation (the Cost) are charged at
// once, even if they do not fit, into at most one burst of debt. The unused
// rest is returned when the handler returns. A cost that is never settled stays
// charged. All of this holds after a hang-up, too. Under ChargeIf, all is
// settled at the end.
//
// A request counts at its admission, with its final cost. A token bucket and a
// log credit what is returned, so clients can use nearly what they offer. A
// window loses the units that are reserved when it turns. If requests may take
// as long as the window, use a bucket, or a window that is much longer.
//
// Settle does not wait: a later failure is a Settled event. An error wraps
// [ErrNotSettled]: the total is negative, the policy has no Cost or reserved
// nothing, the limit is a leaky bucket or Concurrent, the handler has returned,
// or too many settlements are waiting.
func Settle(ctx context.Context, total int64, policies ...string) error {
	if total < 0 {
		return fmt.Errorf("%w: the total %d is negative", ErrNotSettled, total)
	}
	var errs []error
	found := make([]string, 0, 4)
	for t, ok := ctx.Value(tabKey{}).(*tab); ok; t, ok = t.Context.Value(tabKey{}).(*tab) {
		var err error
		if found, err = t.settle(total, policies, found); err != nil {
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
func (t *tab) settle(total int64, policies, found []string) ([]string, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	var errs []error
	for i, outer := 0, len(found); i < len(t.reservations); i++ {
		res := &t.reservations[i]
		name := res.policy.Name
		if res.policy.Cost == nil || len(policies) > 0 && !slices.Contains(policies, name) || slices.Contains(found[:outer], name) {
			continue
		}
		if !slices.Contains(found, name) {
			found = append(found, name)
		}
		err := t.settleOne(res, total)
		if res.check.Op == algorithms.TrialInstead && errors.Is(err, errCannotSettle) {
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

func (t *tab) settleOne(res *reservation, total int64) error {
	switch {
	case t.ended:
		return errEnded
	case res.concurrent() || res.check.Limit.Algorithm() == leakyBucket:
		return errCannotSettle
	}
	res.total = max(res.total, total)
	if res.policy.ChargeIf == nil && !t.force(res) {
		return errBusy
	}
	return nil
}
