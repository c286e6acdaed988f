package algorithms

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// DefaultPolicy is the policy of the functions that take none.
const DefaultPolicy = "default"

// ErrNever is wrapped by [Wait] when no wait can help: the limit is Nobody.
var ErrNever = errors.New("no wait helps")

// Allow takes one unit of limit from key, in [DefaultPolicy]: a check without
// HTTP. Errors are those of the limiter; the Decision is not valid then.
func Allow(ctx context.Context, l Limiter, key string, limit Limit) (Decision, error) {
	return one(ctx, l, Check{Key: key, Limit: limit, Cost: 1})
}

// Peek returns the decision that [Allow] would make now, but for its Allowed
// and RetryAfter, which are those of a cost of 0. It takes nothing.
func Peek(ctx context.Context, l Limiter, key string, limit Limit) (Decision, error) {
	return one(ctx, l, Check{Key: key, Limit: limit})
}

// Forget resets key: what it has used of limit's algorithm is forgotten.
func Forget(ctx context.Context, l Limiter, key string, limit Limit) error {
	_, err := one(ctx, l, Check{Key: key, Limit: limit, Op: Reset})
	return err
}

// Wait blocks until one unit of limit can be taken from key, in
// [DefaultPolicy], takes it, and for a leaky bucket holds until its turn.
//
// It fails at once if the context would end before that, with an error that
// wraps [context.DeadlineExceeded], and with [ErrNever] if no wait helps. When
// the context ends during the hold, the unit goes back. Limits of concurrent
// requests are invalid: what they admit has to be returned, by a receipt that
// Wait does not give.
func Wait(ctx context.Context, l Limiter, key string, limit Limit) error {
	if limit.algorithm.Concurrent() {
		return fmt.Errorf("algorithms: %w: Wait does not take from the limit %v, since nobody could return it", ErrInvalid, limit)
	}
	for {
		d, err := Allow(ctx, l, key, limit)
		if err != nil {
			return err
		}
		if !d.Allowed {
			if err := sleep(ctx, d.RetryAfter); err != nil {
				return err
			}
			continue
		}
		if err = sleep(ctx, d.Delay); err == nil {
			return nil
		}
		back := Check{Key: key, Limit: limit, Op: Return, Cost: 1, Decision: d}
		_, failed := one(context.WithoutCancel(ctx), l, back)
		return errors.Join(err, failed)
	}
}

// sleep waits for d, unless the context ends earlier or would.
func sleep(ctx context.Context, d time.Duration) error {
	if d == Never {
		return fmt.Errorf("algorithms: %w", ErrNever)
	}
	if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) < d {
		return fmt.Errorf("algorithms: the wait of %v: %w", d, context.DeadlineExceeded)
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

func one(ctx context.Context, l Limiter, c Check) (Decision, error) {
	c.Policy = DefaultPolicy
	checks := [1]Check{c}
	if err := l.Allow(ctx, checks[:]); err != nil {
		return Decision{}, err
	}
	return checks[0].Decision, nil
}
