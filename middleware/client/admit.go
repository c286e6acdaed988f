package client

import (
	"context"
	"fmt"
	"time"

	"github.com/penstock-go/penstock/algorithms"
)

// poll is how often the first in a queue asks for a unit of a Concurrent limit. A unit that this process returns wakes
// it at once; a unit of another process does not.
const poll = 250 * time.Millisecond

// leastSleep is the least time between two questions of a request to the limiter.
const leastSleep = time.Millisecond

// admit waits for the pace and the limiter, first in, first out. If it fails, it gives up its turn, and the unit goes back.
func (x *exchange) admit() error {
	times := map[string]time.Duration{}
	x.lane.join(&x.waiter)
	taken, err := x.queue(times)
	x.turn = x.lane.leave(&x.waiter, err == nil)
	if err != nil {
		if taken.Decision.Allowed {
			x.t.giveBack(x.ctx, taken)
		}
		return err
	}
	x.held = x.keep(taken)
	for _, reason := range []string{forPace, forLimit} {
		if waited := times[reason]; waited > 0 {
			x.observe(&Event{Kind: Waited, Reason: reason, Elapsed: waited})
		}
	}
	return nil
}

// queue waits until the pace lets the request go, and the limiter admits it. It adds the times of its waits by their
// reasons, and looks at its line again at least once in deadAfter. If a wait is too long, it does not begin. The first in the
// queue also waits until a leaky bucket serves it, so that a denial in the meantime holds it.
func (x *exchange) queue(times map[string]time.Duration) (taken algorithms.Check, err error) {
	for {
		view := x.lane.look(&x.waiter)
		reason, sleep, least := forPace, view.sleep, view.least
		if sleep == 0 {
			if err = context.Cause(x.ctx); err == nil {
				sleep, least, err = x.take(&taken)
			}
			if err != nil || sleep == 0 {
				return taken, err
			}
			reason = forLimit
		} else if least == 0 && x.t.o.Limiter != nil && !x.t.o.Pace {
			reason = forLimit
		}
		before, left := x.waited, x.patience()
		if least > left || left == 0 {
			return taken, x.tooLong(reason, least, left)
		}
		err = x.pause(min(sleep, left, deadAfter), x.waiter.wake)
		times[reason] += x.waited - before
		if err != nil {
			return taken, err
		}
	}
}

// take takes a unit of the limiter, unless the request has one. If there is none, sleep is the time until the next question,
// and least the time until there is one at the earliest. The limiter decides half a round trip after the question, so the
// time counts from it. For a unit of a leaky bucket, both are the time until it is served.
func (x *exchange) take(taken *algorithms.Check) (sleep, least time.Duration, err error) {
	w := &x.waiter
	sleep = max(time.Until(w.ask), 0)
	if x.t.o.Limiter == nil || taken.Decision.Allowed {
		return sleep, sleep, nil
	}
	units := x.lane.units.Load()
	if sleep > 0 && units == w.seen {
		return sleep, 0, nil
	}
	asked := time.Now()
	checks := [1]algorithms.Check{{Policy: x.t.o.Name, Key: x.lane.key, Limit: x.t.o.Limit, Cost: 1}}
	if err := x.t.o.Limiter.Allow(x.ctx, checks[:]); err != nil {
		return 0, 0, fmt.Errorf("ratelimit: client: the limiter: %w", err)
	}
	*taken = checks[0]
	d := &taken.Decision
	switch {
	case d.Allowed:
		sleep, least = d.Delay, d.Delay
	case x.t.o.Limit.Algorithm().Concurrent(): // RetryAfter is an upper bound
		sleep, least = max(min(d.RetryAfter, poll)-time.Since(asked), leastSleep), 0
	default:
		sleep, least = max(d.RetryAfter-time.Since(asked), leastSleep), d.RetryAfter
	}
	w.ask, w.seen = time.Now().Add(sleep), units
	return sleep, least, nil
}

// giveBack returns a unit. A failure has no remedy: a held unit ends by itself, and
// another one only delays later requests.
func (t *Transport) giveBack(ctx context.Context, taken algorithms.Check) {
	taken.Op = algorithms.Return
	_ = t.o.Limiter.Allow(context.WithoutCancel(ctx), []algorithms.Check{taken})
}
