// The callers, and the mix of their calls.

package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/penstock-go/penstock/algorithms"
)

const (
	callers   = 48
	thinkTime = 20 * time.Millisecond // longest pause of a caller between two calls
	maxCost   = 3
)

// A load is the callers of one act.
type load struct {
	leg   *leg
	books *books

	calls, refused, hungUp atomic.Int64

	mu    sync.Mutex
	onces []*once
}

// run runs the callers until ctx ends.
func (l *load) run(ctx context.Context, seed uint64) {
	var all sync.WaitGroup
	for i := range callers {
		c := &caller{load: l, id: i, in: l.leg.instances[i%len(l.leg.instances)], random: rand.New(rand.NewPCG(seed, uint64(i)))}
		all.Go(func() {
			for pause(ctx, between(c.random, 0, thinkTime)) {
				c.call()
			}
			l.mu.Lock()
			defer l.mu.Unlock()
			l.onces = append(l.onces, c.onces...)
		})
	}
	all.Wait()
}

// A caller makes one call after the other.
type caller struct {
	*load
	id     int
	in     *instance
	random *rand.Rand
	onces  []*once
}

func (c *caller) call() {
	b := c.books
	hot := c.random.IntN(len(b.fast))
	switch p := c.random.IntN(100); {
	case p < 25:
		c.take(b.fast[hot])
	case p < 42:
		c.take(b.newborn(c.random))
	case p < 47:
		c.take(b.cold[c.random.IntN(len(b.cold))])
	case p < 57:
		c.take(b.fast[hot], b.total[hot])
	case p < 62:
		other := (hot + 1 + c.random.IntN(len(b.fast)-1)) % len(b.fast)
		c.take(b.fast[hot], b.total[other]) // another principal, so another slot
	case p < 72:
		c.take(b.closed[hot])
	case p < 75:
		c.take(b.open)
	case p < 79:
		c.hangUp(b.fast[hot])
	default:
		c.once()
	}
}

// take takes the same cost from all accounts. It sometimes returns a part of it.
func (c *caller) take(of ...*account) {
	cost := 1 + c.random.Int64N(maxCost)
	checks := make([]algorithms.Check, len(of))
	for i, a := range of {
		checks[i] = a.check(cost)
	}
	asked := time.Now()
	if !c.ask(checks) || !algorithms.Allowed(checks) {
		return
	}
	for i, a := range of {
		a.admit(&checks[i], asked)
	}
	source := checks[0].Decision.Source
	if len(of) > 1 || source == algorithms.Undecided || c.random.IntN(10) > 0 {
		return
	}
	checks[0].Op, checks[0].Cost = algorithms.Return, 1+c.random.Int64N(cost)
	of[0].add(source, -checks[0].Cost) // even if the limiter drops the return
	c.ask(checks)
}

// hangUp is a take whose caller gives up before the limiter's deadline.
func (c *caller) hangUp(a *account) {
	ctx, cancel := context.WithTimeout(context.Background(), between(c.random, 0, deadline))
	defer cancel()
	checks := []algorithms.Check{a.check(1)}
	asked := time.Now()
	err := c.in.limiter.Allow(ctx, checks)
	c.leg.waits.note(asked, time.Now(), 1)
	c.calls.Add(1)
	switch {
	case err == nil && algorithms.Allowed(checks):
		a.admit(&checks[0], asked)
	case err != nil && ctx.Err() == nil:
		c.leg.broken("%v: got error %v although the caller did not hang up", describe(checks), err)
	case err != nil:
		c.hungUp.Add(1)
	}
}

// ask makes a call, checks promise 4, and reports whether the call was decided.
func (c *caller) ask(checks []algorithms.Check) bool {
	asked := time.Now()
	err := c.in.limiter.Allow(context.Background(), checks)
	c.leg.waits.note(asked, time.Now(), parts(checks))
	c.calls.Add(1)
	first := &checks[0]
	switch {
	case err == nil && first.Fail == algorithms.FailClosed && first.Op == algorithms.Take && first.Decision.Source != algorithms.Shared:
		c.leg.broken("%v was decided: %v", describe(checks), first.Decision.Source)
	case err == nil:
		return true
	case first.Fail != algorithms.FailClosed || !errors.Is(err, algorithms.ErrUnavailable):
		c.leg.broken("%v: got error %v", describe(checks), err)
	}
	c.refused.Add(1)
	return false
}

// parts returns how many round trips a call takes at most.
func parts(checks []algorithms.Check) int {
	if len(checks) > 1 && checks[0].Key+"|all" != checks[1].Key {
		return 2
	}
	return 1
}

func describe(checks []algorithms.Check) string {
	c := &checks[0]
	return fmt.Sprintf("%v %d of %v, %v, key %q (%d checks)", c.Op, c.Cost, c.Limit, c.Fail, c.Key, len(checks))
}
