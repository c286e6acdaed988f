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

// waits are the times that a request has waited before it is sent.
type waits struct{ pace, limit time.Duration }

// admit waits for the pace and the limiter, first in, first out. If it fails, it gives up its turn.
func (x *exchange) admit() error {
	if x.t.o.Limiter == nil && x.ctx.Err() == nil {
		if turn, ok := x.lane.pass(&x.waiter); ok {
			x.turn = turn
			return nil
		}
	}
	var times waits
	taken, err := x.depart(&times)
	if err == nil {
		err = x.untilServed(taken, &times)
	}
	if err != nil {
		return err
	}
	x.held = x.keep(taken)
	if times.pace > 0 {
		x.observe(&Event{Kind: Waited, Reason: forPace, Elapsed: times.pace})
	}
	if times.limit > 0 {
		x.observe(&Event{Kind: Waited, Reason: forLimit, Elapsed: times.limit})
	}
	return nil
}

// depart waits in the queue. It leaves the queue even if the limiter panics.
func (x *exchange) depart(times *waits) (taken algorithms.Check, err error) {
	admitted := false
	x.lane.join(&x.waiter)
	defer func() { x.turn = x.lane.leave(&x.waiter, admitted) }()
	taken, err = x.queue(times)
	admitted = err == nil
	return taken, err
}

// queue waits until the request is the first, the pace lets it go, and the limiter admits it. It adds the times of its
// waits. It asks the limiter at the instants at which there may be a unit, and when one comes back.
func (x *exchange) queue(times *waits) (taken algorithms.Check, err error) {
	for {
		reason, total := forPace, &times.pace
		sleep, least := x.lane.delay(&x.waiter)
		switch {
		case sleep == 0:
			if err := context.Cause(x.ctx); err != nil {
				return taken, err
			}
			reason, total = forLimit, &times.limit
			if sleep = x.lane.asking(&x.waiter); sleep == 0 {
				var admitted bool
				if taken, admitted, sleep, least, err = x.take(); err != nil || admitted {
					return taken, err
				}
			}
		case least == 0 && x.t.o.Limiter != nil && !x.t.o.Pace:
			reason, total = forLimit, &times.limit
		}
		budget := x.budget()
		if least > budget || budget == 0 {
			return taken, x.tooLong(reason, least)
		}
		before := x.waited
		err = x.pause(min(sleep, budget), x.waiter.wake)
		*total += x.waited - before
		if err != nil {
			return taken, err
		}
	}
}

// take asks the limiter for a unit. If there is none, sleep is the time until the next question, and least the time until
// there is one at the earliest. The limiter decides half a round trip after the question, so the time counts from it.
func (x *exchange) take() (taken algorithms.Check, admitted bool, sleep, least time.Duration, err error) {
	if x.t.o.Limiter == nil {
		return taken, true, 0, 0, nil
	}
	asked := time.Now()
	checks := [1]algorithms.Check{{Policy: x.t.o.Name, Key: x.lane.key, Limit: x.t.o.Limit, Cost: 1}}
	if err := x.t.o.Limiter.Allow(x.ctx, checks[:]); err != nil {
		return taken, false, 0, 0, fmt.Errorf("ratelimit: client: the limiter: %w", err)
	}
	d := &checks[0].Decision
	if d.Allowed {
		return checks[0], true, 0, 0, nil
	}
	sleep = d.RetryAfter
	if x.t.o.Limit.Algorithm().Concurrent() { // RetryAfter is an upper bound
		sleep = min(sleep, poll)
	} else {
		least = sleep
	}
	sleep = max(sleep-time.Since(asked), leastSleep)
	x.lane.notBefore(&x.waiter, time.Now().Add(sleep))
	return taken, false, sleep, least, nil
}

// untilServed waits until a leaky bucket serves the request. If the request does not wait so
// long, its unit goes back.
func (x *exchange) untilServed(taken algorithms.Check, times *waits) (err error) {
	d := taken.Decision.Delay
	switch {
	case d == 0:
		return nil
	case d > x.budget():
		err = x.tooLong(forLimit, d)
	default:
		err = x.pause(d, nil)
		times.limit += d
	}
	if err != nil {
		x.t.giveBack(x.ctx, taken)
	}
	return err
}

// giveBack returns a unit. A failure has no remedy: a held unit ends by itself, and
// another one only delays later requests.
func (t *Transport) giveBack(ctx context.Context, taken algorithms.Check) {
	taken.Op = algorithms.Return
	_ = t.o.Limiter.Allow(context.WithoutCancel(ctx), []algorithms.Check{taken})
}
