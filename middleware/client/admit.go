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

// admit waits for the pace and the limiter, first in, first out. If it fails, it gives up its turn.
func (x *exchange) admit() error {
	if x.lane == nil {
		return nil
	}
	var times [WaitedForLimit + 1]time.Duration
	taken, err := x.depart(&times)
	if err == nil {
		err = x.hold(taken, &times)
	}
	if err != nil {
		return err
	}
	x.held = x.keep(taken)
	for _, kind := range []EventKind{WaitedForPace, WaitedForLimit} {
		if times[kind] > 0 {
			x.observe(&Event{Kind: kind, Elapsed: times[kind]})
		}
	}
	return nil
}

// depart waits in the queue. It leaves the queue even if the limiter panics.
func (x *exchange) depart(times *[WaitedForLimit + 1]time.Duration) (taken algorithms.Check, err error) {
	w, admitted := x.lane.join(), false
	defer func() { x.turn = x.lane.leave(w, admitted) }()
	taken, err = x.queue(w, times)
	admitted = err == nil
	return taken, err
}

// queue waits until w is the first, the pace lets it go, and the limiter admits it. It
// adds the times of its waits.
func (x *exchange) queue(w *waiter, times *[WaitedForLimit + 1]time.Duration) (taken algorithms.Check, err error) {
	for {
		kind := WaitedForPace
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
			kind = WaitedForLimit
		} else if !x.lane.paced {
			kind = WaitedForLimit
		}
		budget := x.budget()
		if least > budget || budget == 0 {
			return taken, x.tooLong(kind, least)
		}
		before := x.waited
		err = x.pause(min(sleep, budget), w.wake)
		times[kind] += x.waited - before
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
func (x *exchange) hold(taken algorithms.Check, times *[WaitedForLimit + 1]time.Duration) (err error) {
	d := taken.Decision.Delay
	switch {
	case d == 0:
		return nil
	case d > x.budget():
		err = x.tooLong(WaitedForLimit, d)
	default:
		err = x.pause(d, nil)
		times[WaitedForLimit] += d
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
