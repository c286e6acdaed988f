// The callers, and the mix of their calls.

package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/penstock-go/penstock/algorithms"
)

const (
	callers    = 48
	thinkTime  = 20 * time.Millisecond // longest pause of a caller between two calls
	maxCost    = 3
	coldKeys   = 2_000
	generation = 3 * time.Second // one generation of slow keys after the other is hot
)

var (
	// fastLimits refill within a leg, and keys with slowLimits hardly do.
	fastLimits = []algorithms.Limit{
		algorithms.TokenBucket(40, time.Second).WithBurst(20),
		algorithms.TokenBucket(300, time.Minute).WithBurst(60),
		algorithms.LeakyBucket(40, time.Second).WithBurst(20),
		algorithms.SlidingWindowCounter(80, 2*time.Second),
		algorithms.SlidingWindowLog(60, 2*time.Second),
		algorithms.FixedWindow(80, 2*time.Second),
	}
	slowLimits = []algorithms.Limit{
		algorithms.TokenBucket(60, time.Hour),
		algorithms.LeakyBucket(60, time.Hour),
		algorithms.SlidingWindowCounter(60, time.Hour),
		algorithms.SlidingWindowLog(60, time.Hour),
		algorithms.FixedWindow(60, time.Hour),
	}
	totalLimit = algorithms.TokenBucket(2_000, time.Minute).WithBurst(100)
	coldLimit  = algorithms.TokenBucket(5, time.Second)
	openLimit  = algorithms.TokenBucket(20, time.Second)
)

// work runs the callers until ctx ends.
func (l *leg) work(ctx context.Context) {
	var all sync.WaitGroup
	for i := range callers {
		c := &caller{leg: l, id: i, in: l.instances[i%len(l.instances)], random: rand.New(rand.NewPCG(l.seed, uint64(i)))}
		all.Go(func() {
			for pause(ctx, between(c.random, 0, thinkTime)) {
				c.call()
			}
		})
	}
	all.Wait()
}

// A caller makes one call after the other.
type caller struct {
	*leg
	id     int
	in     *instance
	random *rand.Rand
}

func (c *caller) call() {
	hot := c.random.IntN(len(fastLimits))
	other := (hot + 1 + c.random.IntN(len(fastLimits)-1)) % len(fastLimits)
	fast := func(i int) *account { return c.books.of("hot", fmt.Sprint(i), fastLimits[i], algorithms.FailLocal) }
	total := func(i int) *account {
		return c.books.of("total", fmt.Sprint(i, "|all"), totalLimit, algorithms.FailLocal)
	}
	switch p := c.random.IntN(100); {
	case p < 25:
		c.take(fast(hot))
	case p < 42:
		slow := c.random.IntN(len(slowLimits))
		key := fmt.Sprint("slow", slow, "-", time.Since(c.books.begin)/generation)
		c.take(c.books.of("hot", key, slowLimits[slow], algorithms.FailLocal))
	case p < 47:
		c.take(c.books.of("cold", fmt.Sprint("cold", c.random.IntN(coldKeys)), coldLimit, algorithms.FailLocal))
	case p < 57:
		c.take(fast(hot), total(hot))
	case p < 62:
		c.take(fast(hot), total(other)) // another principal, so another slot
	case p < 72:
		c.take(c.books.of("closed", fmt.Sprint(hot), fastLimits[hot], algorithms.FailClosed))
	case p < 75:
		c.take(c.books.of("open", "open", openLimit, algorithms.FailOpen))
	case p < 79:
		c.hangUp(fast(hot))
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
		a.admit(checks[i].Decision.Source, cost, asked)
	}
	source := checks[0].Decision.Source
	if len(of) > 1 || source == algorithms.Undecided || c.random.IntN(10) > 0 {
		return
	}
	checks[0].Op, checks[0].Cost = algorithms.Return, 1+c.random.Int64N(cost)
	of[0].admit(source, -checks[0].Cost, asked) // even if the limiter drops the return
	c.ask(checks)
}

// hangUp is a take whose caller gives up before the limiter's deadline.
func (c *caller) hangUp(a *account) {
	ctx, cancel := context.WithTimeout(context.Background(), between(c.random, 0, deadline))
	defer cancel()
	checks := []algorithms.Check{a.check(1)}
	asked := time.Now()
	err := c.timed(ctx, checks)
	switch {
	case err == nil && algorithms.Allowed(checks):
		a.admit(checks[0].Decision.Source, 1, asked)
	case err != nil && ctx.Err() == nil:
		c.broken("%v: got error %v although the caller did not hang up", describe(checks), err)
	case err != nil:
		c.hungUp.Add(1)
	}
}

// ask makes a call, checks promise 4, and reports whether the call was decided.
func (c *caller) ask(checks []algorithms.Check) bool {
	err := c.timed(context.Background(), checks)
	first := &checks[0]
	mayFail := first.Fail == algorithms.FailClosed || first.Op == algorithms.Return
	switch {
	case err == nil && first.Fail == algorithms.FailClosed && first.Op == algorithms.Take && first.Decision.Source != algorithms.Shared:
		c.broken("%v was decided: %v", describe(checks), first.Decision.Source)
	case err == nil:
		return true
	case !mayFail || !errors.Is(err, algorithms.ErrUnavailable):
		c.broken("%v: got error %v", describe(checks), err)
	}
	c.refused.Add(1)
	return false
}

// timed makes a call, and notes how long it took.
func (c *caller) timed(ctx context.Context, checks []algorithms.Check) error {
	slots := 1 // of a Cluster
	if len(checks) > 1 && checks[0].Key+"|all" != checks[1].Key {
		slots = 2
	}
	asked := time.Now()
	err := c.in.limiter.Allow(ctx, checks)
	c.waits.note(asked, time.Now(), slots)
	c.calls.Add(1)
	return err
}

func describe(checks []algorithms.Check) string {
	c := &checks[0]
	return fmt.Sprintf("%v %d of %v, %v, key %q (%d checks)", c.Op, c.Cost, c.Limit, c.Fail, c.Key, len(checks))
}
