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
	if x.lane == nil {
		return nil
	}
	var times waits
	taken, err := x.depart(&times)
	if err == nil {
		err = x.hold(taken, &times)
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
	w, admitted := x.lane.join(), false
	defer func() { x.turn = x.lane.leave(w, admitted) }()
	taken, err = x.queue(w, times)
	admitted = err == nil
	return taken, err
}

// queue waits until w is the first, the pace lets it go, and the limiter admits it. It
// adds the times of its waits.
func (x *exchange) queue(w *waiter, times *waits) (taken algorithms.Check, err error) {
	for {
		reason, total := forPace, &times.pace
		sleep, least := x.lane.delay(w)
		if sleep == 0 {
			if err := context.Cause(x.ctx); err != nil {
				return taken, err
			}
			var admitted bool
			if taken, admitted, sleep, err = x.take(); err != nil || admitted {
				return taken, err
			}
			if least = sleep; x.t.o.Limit.Algorithm().Concurrent() { // RetryAfter is an upper bound
				sleep, least = min(sleep, poll), 0
			}
			sleep = max(sleep, leastSleep)
			reason, total = forLimit, &times.limit
		} else if !x.lane.paced {
			reason, total = forLimit, &times.limit
		}
		budget := x.budget()
		if least > budget || budget == 0 {
			return taken, x.tooLong(reason, least)
		}
		before := x.waited
		err = x.pause(min(sleep, budget), w.wake)
		*total += x.waited - before
		if err != nil {
			return taken, err
		}
	}
}

// take asks the limiter for a unit. If there is none, wait is the limiter's RetryAfter.
func (x *exchange) take() (taken algorithms.Check, admitted bool, wait time.Duration, err error) {
	if x.t.o.Limiter == nil {
		return taken, true, 0, nil
	}
	checks := [1]algorithms.Check{{Policy: x.t.o.Name, Key: x.lane.key, Limit: x.t.o.Limit, Cost: 1}}
	if err := x.t.o.Limiter.Allow(x.ctx, checks[:]); err != nil {
		return taken, false, 0, fmt.Errorf("ratelimit: client: the limiter: %w", err)
	}
	if d := &checks[0].Decision; !d.Allowed {
		return taken, false, d.RetryAfter, nil
	}
	return checks[0], true, 0, nil
}

// hold waits until a leaky bucket serves the request. If the request does not wait so
// long, its unit goes back.
func (x *exchange) hold(taken algorithms.Check, times *waits) (err error) {
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
