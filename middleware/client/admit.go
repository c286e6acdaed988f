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

// depart waits in the queue. It leaves the queue even if the limiter panics. If it fails, the unit goes back.
func (x *exchange) depart(times *waits) (taken algorithms.Check, err error) {
	admitted := false
	x.lane.join(&x.waiter)
	defer func() { x.turn = x.lane.leave(&x.waiter, admitted) }()
	taken, err = x.queue(times)
	if admitted = err == nil; !admitted && taken.Decision.Allowed {
		x.t.giveBack(x.ctx, taken)
	}
	return taken, err
}

// queue waits until the request is the first, the pace lets it go, and the limiter admits it. It adds the times of its
// waits. It asks the limiter at the instants at which there may be a unit, and when one comes back. The first in the queue
// also waits until a leaky bucket serves it, so that a denial in the meantime holds it.
func (x *exchange) queue(times *waits) (taken algorithms.Check, err error) {
	var served time.Time // of the unit that was taken
	for {
		reason, total := forPace, &times.pace
		sleep, least := x.lane.delay(&x.waiter)
		switch {
		case sleep == 0:
			if err := context.Cause(x.ctx); err != nil {
				return taken, err
			}
			reason, total = forLimit, &times.limit
			if !taken.Decision.Allowed {
				if taken, sleep, least, err = x.take(); err != nil {
					return taken, err
				}
				served = time.Now().Add(taken.Decision.Delay)
			}
			if taken.Decision.Allowed {
				if sleep = time.Until(served); sleep <= 0 {
					return taken, nil
				}
				least = sleep
			}
		case least == 0 && x.t.o.Limiter != nil && !x.t.o.Pace:
			reason, total = forLimit, &times.limit
		}
		waited, err := x.await(reason, sleep, least)
		*total += waited
		if err != nil {
			return taken, err
		}
	}
}

// await sleeps until the request has to look at its lane again, at least once in deadAfter. If that is too long, it does not
// sleep.
func (x *exchange) await(reason string, sleep, least time.Duration) (waited time.Duration, err error) {
	left := x.patience()
	if least > left || left == 0 {
		return 0, x.tooLong(reason, least, left)
	}
	before := x.waited
	err = x.pause(min(sleep, left, deadAfter), x.waiter.wake)
	return x.waited - before, err
}

// take asks the limiter for a unit, if it may have one. If there is none, sleep is the time until the next question, and
// least the time until there is one at the earliest. The limiter decides half a round trip after the question, so the time
// counts from it.
func (x *exchange) take() (taken algorithms.Check, sleep, least time.Duration, err error) {
	if x.t.o.Limiter == nil {
		taken.Decision.Allowed = true
		return taken, 0, 0, nil
	}
	if sleep = x.lane.asking(&x.waiter); sleep > 0 {
		return taken, sleep, 0, nil
	}
	asked := time.Now()
	checks := [1]algorithms.Check{{Policy: x.t.o.Name, Key: x.lane.key, Limit: x.t.o.Limit, Cost: 1}}
	if err := x.t.o.Limiter.Allow(x.ctx, checks[:]); err != nil {
		return taken, 0, 0, fmt.Errorf("ratelimit: client: the limiter: %w", err)
	}
	d := &checks[0].Decision
	if d.Allowed {
		return checks[0], 0, 0, nil
	}
	sleep = d.RetryAfter
	if x.t.o.Limit.Algorithm().Concurrent() { // RetryAfter is an upper bound
		sleep = min(sleep, poll)
	} else {
		least = sleep
	}
	sleep = max(sleep-time.Since(asked), leastSleep)
	x.lane.notBefore(&x.waiter, time.Now().Add(sleep))
	return taken, sleep, least, nil
}

// giveBack returns a unit. A failure has no remedy: a held unit ends by itself, and
// another one only delays later requests.
func (t *Transport) giveBack(ctx context.Context, taken algorithms.Check) {
	taken.Op = algorithms.Return
	_ = t.o.Limiter.Allow(context.WithoutCancel(ctx), []algorithms.Check{taken})
}
