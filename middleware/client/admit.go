package client

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"
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

// renewals is how often a unit is renewed before its hold would end.
const renewals = 3

// A held is a unit of a Concurrent limit that a request holds until its response body is
// read to its end or closed. nil holds nothing.
type held struct {
	t     *Transport
	ctx   context.Context
	lane  *lane
	taken algorithms.Check

	mu    sync.Mutex // also makes a renewal end before the return, which it would undo
	ended bool
	timer *time.Timer
}

// keep holds a unit that was taken, if its limit is Concurrent.
func (x *exchange) keep(taken algorithms.Check) *held {
	if !x.t.o.Limit.Algorithm().Concurrent() {
		return nil
	}
	h := &held{t: x.t, ctx: context.WithoutCancel(x.ctx), lane: x.lane, taken: taken}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.timer = time.AfterFunc(x.t.o.Limit.Window()/renewals, h.renew)
	return h
}

func (h *held) renew() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ended {
		return
	}
	c := h.taken
	c.Op = algorithms.Renew
	_ = h.t.o.Limiter.Allow(h.ctx, []algorithms.Check{c}) // the next renewal tries again
	h.timer.Reset(h.t.o.Limit.Window() / renewals)
}

// release returns the unit, once, and wakes the first waiting request.
func (h *held) release() {
	if h == nil {
		return
	}
	h.mu.Lock()
	ended := h.ended
	h.ended = true
	h.timer.Stop()
	h.mu.Unlock()
	if ended {
		return
	}
	h.t.giveBack(h.ctx, h.taken)
	h.lane.returned()
}

// until holds the unit until the body of resp is read to its end or closed. A response without a body has
// ended.
func (h *held) until(resp *http.Response) {
	if h == nil {
		return
	}
	body := heldBody{resp.Body, h}
	w, upgraded := resp.Body.(io.Writer) // of 101 Switching Protocols
	switch {
	case resp.Body == http.NoBody:
		h.release()
	case upgraded:
		resp.Body = struct {
			heldBody
			io.Writer
		}{body, w}
	default:
		resp.Body = body
	}
}

// A heldBody is a body whose end returns a unit.
type heldBody struct {
	io.ReadCloser
	h *held
}

func (b heldBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err == io.EOF {
		b.h.release()
	}
	return n, err
}

func (b heldBody) Close() error {
	err := b.ReadCloser.Close()
	b.h.release()
	return err
}
