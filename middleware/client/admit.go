package client

import (
	"context"
	"fmt"
	"time"

	"github.com/penstock-go/penstock/algorithms"
)

// poll is how often the first in a queue asks for a unit of a Concurrent limit. The unit
// of this process wakes it at once; another process's does not.
const poll = 250 * time.Millisecond

// admit waits for the pace and the limiter, first in, first out.
func (x *exchange) admit() (turn uint64, h *held, err error) {
	if x.lane == nil {
		return 0, nil, nil
	}
	var times [WaitedForLimit + 1]time.Duration
	w := x.lane.join()
	taken, err := x.queue(w, &times)
	turn = x.lane.leave(w, err == nil)
	if err == nil {
		err = x.hold(taken, &times)
		if err != nil {
			x.lane.learn(turn, nil, false, time.Now()) // the turn was not used
		}
	}
	if err != nil {
		return 0, nil, err
	}
	for _, kind := range []EventKind{WaitedForPace, WaitedForLimit} {
		if times[kind] > 0 {
			x.observe(&Event{Kind: kind, Elapsed: times[kind]})
		}
	}
	return turn, x.keep(taken), nil
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
			if taken, sleep, least, err = x.take(); err != nil || sleep == 0 {
				return taken, err
			}
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

// take asks the limiter for a unit. If there is none, it returns how long to sleep until
// the next try, and the least that the request still has to wait.
func (x *exchange) take() (taken algorithms.Check, sleep, least time.Duration, err error) {
	if x.t.o.Limiter == nil {
		return taken, 0, 0, nil
	}
	checks := [1]algorithms.Check{{Policy: x.t.o.Name, Key: x.lane.key, Limit: x.t.o.Limit, Cost: 1}}
	if err := x.t.o.Limiter.Allow(x.ctx, checks[:]); err != nil {
		return taken, 0, 0, fmt.Errorf("ratelimit: client: the limiter: %w", err)
	}
	d := &checks[0].Decision
	switch {
	case d.Allowed:
		return checks[0], 0, 0, nil
	case x.t.o.Limit.Algorithm().Concurrent(): // RetryAfter is an upper bound
		return taken, min(d.RetryAfter, poll), 0, nil
	}
	return taken, d.RetryAfter, d.RetryAfter, nil
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
