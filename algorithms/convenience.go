// Checks without HTTP: one key, one limit, one line.

package algorithms

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/penstock-go/penstock/algorithms/internal/step"
)

// conveniencePolicy is the policy of Allow and Wait.
const conveniencePolicy = "default"

// Allow takes one unit of limit from key, in the policy "default".
func Allow(ctx context.Context, l Limiter, key string, limit Limit) (d Decision, err error) {
	err = one(ctx, l, key, &limit, Take, 1, &d)
	return d, err
}

// AllowN is Allow for n units, all or nothing; 0 returns the figures.
func AllowN(ctx context.Context, l Limiter, key string, limit Limit, n int64) (d Decision, err error) {
	err = one(ctx, l, key, &limit, Take, n, &d)
	return d, err
}

// AllowUpTo takes as many of n units as fit now, in one atomic call, and returns how many. d has the figures
// afterwards; its Allowed says whether all n were taken, and its RetryAfter when one more fits. The units cannot be
// returned, so a Concurrent limit is ErrInvalid.
func AllowUpTo(ctx context.Context, l Limiter, key string, limit Limit, n int64) (taken int64, d Decision, err error) {
	if limit.Algorithm().Concurrent() {
		return 0, d, fmt.Errorf("algorithms: %w: AllowUpTo cannot return the units of the limit %v; call Allow and keep its receipt", ErrInvalid, limit)
	}
	if n <= 0 {
		d, err = AllowN(ctx, l, key, limit, n)
		return 0, d, err
	}
	// The parts are trials, so each is charged if it fits after those before it. None is larger than the sum of those
	// behind it and one more, so what fits of n is what the trials charge: of 10, the parts 5, 3, 1 and 1 make any number.
	var parts []Check
	for rest := min(n, step.MaxUnits); rest > 0; rest /= 2 {
		parts = append(parts, Check{Policy: conveniencePolicy, Key: key, Limit: limit, Op: Trial, Cost: rest - rest/2})
	}
	if err := l.Allow(ctx, parts); err != nil {
		return 0, d, err
	}
	var delay time.Duration
	for i := range parts {
		if d = parts[i].Decision; d.Allowed {
			taken, delay = taken+parts[i].Cost, d.Delay
		}
	}
	if d.Allowed && taken < n {
		d.RetryAfter = d.UnitAfter // the last part was the last unit that fitted
	}
	d.Allowed, d.Delay, d.Receipt = taken == n, delay, Receipt{}
	return taken, d, nil
}

// Wait blocks until it has taken one unit of limit from key, in the policy "default", and then for the Delay of a
// leaky bucket. It fails at once with ErrInvalid if no wait helps or the limit is Concurrent, and with an error that
// wraps [context.DeadlineExceeded] if the context would end first. If the context ends during the Delay, the unit
// goes back. Waiters have no order.
func Wait(ctx context.Context, l Limiter, key string, limit Limit) error {
	return WaitN(ctx, l, key, limit, 1)
}

// WaitN is Wait for n units, all or nothing. Calls for fewer units may delay it
// for long.
func WaitN(ctx context.Context, l Limiter, key string, limit Limit, n int64) error {
	if limit.Algorithm().Concurrent() {
		return fmt.Errorf("algorithms: %w: Wait cannot return the units of the limit %v; call Allow and keep its receipt", ErrInvalid, limit)
	}
	for {
		d, err := AllowN(ctx, l, key, limit, n)
		if err != nil {
			return err
		}
		if !d.Allowed {
			if d.RetryAfter == Never {
				return fmt.Errorf("algorithms: %w: no wait helps: the limit %v never admits a cost of %d", ErrInvalid, limit, n)
			}
			if err := sleep(ctx, d.RetryAfter); err != nil {
				return err
			}
			continue
		}
		if err = sleep(ctx, d.Delay); err == nil {
			return nil
		}
		return errors.Join(err, one(context.WithoutCancel(ctx), l, key, &limit, Return, n, &d))
	}
}

// sleep waits for d. It fails if the context ends earlier, or would.
func sleep(ctx context.Context, d time.Duration) error {
	if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) < d {
		return fmt.Errorf("algorithms: the wait of %v exceeds the deadline: %w", d, context.DeadlineExceeded)
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// calls are calls of one check. They are pooled, because arguments of interface calls
// escape to the heap.
var calls = sync.Pool{New: func() any { return new([1]Check) }}

// one makes a call of one check, and writes its decision to d, in place, because a
// Decision is large. A Return reads its receipt there.
func one(ctx context.Context, l Limiter, key string, limit *Limit, op Op, n int64, d *Decision) (err error) {
	if m, ok := l.(*Memory); ok && op == Take && limit.valid && limit.step.TakesLone() && n >= 0 && key != "" && ctx.Err() == nil {
		return m.take(conveniencePolicy, key, &limit.step, min(n, step.MaxUnits), d) // a Memory needs nothing else of a Check
	}
	call := calls.Get().(*[1]Check)
	c := &call[0]
	c.Policy, c.Key, c.Limit, c.Op, c.Cost, c.Decision = conveniencePolicy, key, *limit, op, n, *d
	if err = l.Allow(ctx, call[:]); err == nil {
		*d = c.Decision
	}
	*c = Check{}
	calls.Put(call)
	return err
}
