package redistest

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// This file has the steps of a Client. Each step does one thing to a trip, and a trip passes the steps in their order.
// Fail and Reply answer the trip, so later steps do not see it.

// A Step does one thing to a trip of a Client. The functions of this file make steps.
type Step func(ctx context.Context, t *trip, next handler) error

type handler func(ctx context.Context, t *trip) error

// A trip is everything that a client sends at once.
type trip struct {
	*Client
	cmds []redis.Cmder
	send redis.ProcessPipelineHook // executes commands in place of cmds
	text string
}

// Hold holds a trip before it is sent, until Client.Release or Client.Open. A held trip ignores its context.
func Hold() Step {
	return func(ctx context.Context, t *trip, next handler) error {
		t.hold()
		return next(ctx, t)
	}
}

// HoldReply holds a trip after it was executed, until Client.Release or Client.Open. A held trip ignores its context.
func HoldReply() Step {
	return func(ctx context.Context, t *trip, next handler) error {
		err := next(ctx, t)
		t.hold()
		return err
	}
}

// Wait lets d pass before a trip is sent. If the context ends earlier, the trip is not sent and fails with the
// context's error.
func Wait(d time.Duration) Step {
	return func(ctx context.Context, t *trip, next handler) error {
		select {
		case <-time.After(d):
			return next(ctx, t)
		case <-ctx.Done():
			return t.fail(ctx.Err())
		}
	}
}

// WaitReply lets d pass after a trip was executed, even if the context ends.
func WaitReply(d time.Duration) Step {
	return func(ctx context.Context, t *trip, next handler) error {
		err := next(ctx, t)
		time.Sleep(d)
		return err
	}
}

// Fail answers a trip with an error. Nothing is sent.
func Fail(err error) Step {
	return func(_ context.Context, t *trip, _ handler) error { return t.fail(err) }
}

// FailReply gives a trip an error after it was executed, as a lost reply does. The commands still hold their values,
// which callers must not read when there is an error.
func FailReply(err error) Step {
	return func(ctx context.Context, t *trip, next handler) error {
		_ = next(ctx, t) // the caller gets err instead
		return t.fail(err)
	}
}

// Reply answers every command of a trip with a value, such as the text of INFO. Nothing is sent. A command that cannot
// hold a value of that type fails.
func Reply(value any) Step {
	return func(_ context.Context, t *trip, _ handler) error {
		for _, cmd := range t.cmds {
			if !setValue(cmd, value) {
				return t.fail(fmt.Errorf("redistest: %T takes no %T", cmd, value))
			}
		}
		return nil
	}
}

// Send sends another command in place of each command of a trip. The original command gets the reply.
func Send(args ...any) Step {
	return func(ctx context.Context, t *trip, next handler) error {
		own := make([]*redis.Cmd, len(t.cmds))
		cmds := make([]redis.Cmder, len(t.cmds))
		for i := range own {
			own[i] = redis.NewCmd(ctx, args...)
			cmds[i] = own[i]
		}
		err := next(ctx, &trip{Client: t.Client, cmds: cmds, send: t.send, text: t.text})
		for i, cmd := range t.cmds {
			cmd.SetErr(own[i].Err())
			if own[i].Err() == nil && !setValue(cmd, own[i].Val()) {
				return t.fail(fmt.Errorf("redistest: %T takes no %T", cmd, own[i].Val()))
			}
		}
		return err
	}
}

// Inspect calls f with each command before it is sent. f may change the arguments in place.
func Inspect(f func(cmd redis.Cmder)) Step {
	return func(ctx context.Context, t *trip, next handler) error {
		for _, cmd := range t.cmds {
			f(cmd)
		}
		return next(ctx, t)
	}
}

// Deaf hides the end of the context from the steps after it and from the wrapped client.
func Deaf() Step {
	return func(ctx context.Context, t *trip, next handler) error { return next(context.WithoutCancel(ctx), t) }
}

// On applies steps to the trips whose text contains text, in any letter case; see Client.Trips. All other trips pass.
func On(text string, steps ...Step) Step {
	return func(ctx context.Context, t *trip, next handler) error {
		if contains(t.text, text) {
			next = compose(steps, next)
		}
		return next(ctx, t)
	}
}

// InTurn applies the first step to the first trip that arrives here, the second step to the second trip, and so on. All
// later trips pass. Give it to one Client, and once: it counts from its making.
func InTurn(steps ...Step) Step {
	var arrived atomic.Int64
	return func(ctx context.Context, t *trip, next handler) error {
		if i := int(arrived.Add(1)) - 1; i < len(steps) {
			return steps[i](ctx, t, next)
		}
		return next(ctx, t)
	}
}

// fail gives every command the error and returns it.
func (t *trip) fail(err error) error {
	for _, cmd := range t.cmds {
		cmd.SetErr(err)
	}
	return err
}

// setValue gives a command its reply, and reports whether the command takes a value of that type.
func setValue(cmd redis.Cmder, value any) bool {
	if c, ok := cmd.(interface{ SetVal(any) }); ok {
		c.SetVal(value)
		return true
	}
	switch value := value.(type) {
	case string:
		return set(cmd, value)
	case int64:
		return set(cmd, value)
	default:
		return false
	}
}

func set[V any](cmd redis.Cmder, value V) bool {
	c, ok := cmd.(interface{ SetVal(V) })
	if ok {
		c.SetVal(value)
	}
	return ok
}
