// Several instances without a store: each has its part of every limit.

package algorithms

import (
	"context"
	"fmt"
)

// Divide returns a limiter for one of several instances that share no store: each decides by its equal part of every
// limit, also of overrides, so together they never admit more than the limit. A client that reaches only one instance
// has only its part, and a request that costs more is never admitted.
//
// Give the most instances that there can be: with a lower number, clients may get more. A limit with less than a unit
// for each instance is ErrInvalid. Parts of units are lost: 100 per minute on 8 instances is 12 on each. Buckets keep
// their rate. With up to one instance, Divide returns l.
func Divide(l Limiter, instances int) Limiter {
	if instances <= 1 {
		return l
	}
	return &divided{l, int64(instances)}
}

// A divided limiter gives its limiter parts of the checks' limits.
type divided struct {
	whole     Limiter
	instances int64
}

// Unwrap is for packages that look for the features of a limiter.
func (d *divided) Unwrap() Limiter { return d.whole }

// Allow implements [Limiter].
func (d *divided) Allow(ctx context.Context, checks []Check) error {
	var few [4]Limit
	limits := few[:0]
	defer func() {
		for i := range limits {
			checks[i].Limit = limits[i]
		}
	}()
	for i := range checks {
		l := checks[i].Limit
		limits = append(limits, l)
		if !l.valid {
			continue // the limiter reports it
		}
		part, ok := l.step.Ceiling(d.instances)
		if !ok {
			return fmt.Errorf("algorithms: %w of policy %q: the limit %v has less than a unit for each of %d instances", ErrInvalid, checks[i].Policy, l, d.instances)
		}
		checks[i].Limit = LimitOf(part)
	}
	return d.whole.Allow(ctx, checks)
}
