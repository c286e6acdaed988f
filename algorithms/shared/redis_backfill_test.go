// Backfills: charges of units that were admitted without Redis.

package shared

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/algorithms/internal/step"
	"github.com/penstock-go/penstock/internal/redistest"
)

var backfilled = []algorithms.Limit{
	algorithms.TokenBucket(7, time.Second).WithBurst(9),
	algorithms.LeakyBucket(3, time.Second).WithBurst(5),
	algorithms.SlidingWindowCounter(12, time.Second),
	algorithms.SlidingWindowLog(8, time.Second),
	algorithms.FixedWindow(6, time.Second),
}

// stepped decides a call by the steps themselves, as of now.
func stepped(states map[step.Key]step.State, c *call, now int64) {
	for _, it := range c.steps.Items {
		it.Held.State, it.Held.Exists = states[it.Key]
	}
	c.steps.Decide(now, func(*step.Item) bool { return true })
	for i := range c.items {
		it := &c.items[i]
		if it.Held.Dirty {
			states[it.Key] = it.Held.State
		}
		it.decide(now, algorithms.Shared)
	}
}

// Redis backfills as the steps do, whatever came before and comes after.
func TestRedisBackfillsAsSteps(t *testing.T) {
	t.Parallel()
	var now int64
	r := newRedis(t, redistest.Start(t).Client(), &Options{Now: func() time.Time { return time.UnixMicro(now) }})
	states := make(map[step.Key]step.State)
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 1))
	ops := []step.Op{step.Take, step.Take, step.Force, step.Grant}
	for trace := range 60 {
		now = 1_763_729_430_000_000 + rng.Int64N(1e9)
		for i := range 40 {
			now += rng.Int64N(600_000) - 20_000
			limit, cost, op := backfilled[rng.IntN(len(backfilled))], rng.Int64N(6), ops[rng.IntN(len(ops))]
			if rng.IntN(2) == 0 {
				op = step.Backfill
			}
			newCall := func() *call {
				c := callOf(1)
				it := &c.items[0]
				it.Key = step.Key{Policy: "p", Text: fmt.Sprintf("trace=%d", trace), Scope: limit.Step().Scope}
				it.Limit, it.Op, it.Cost = *limit.Step(), op, cost
				if err := c.add(it); err != nil {
					t.Fatal(err)
				}
				return c
			}
			got, want := newCall(), newCall()
			stepped(states, want, now)
			if err := r.redis.allow(t.Context(), got); err != nil {
				t.Fatal(err)
			}
			g, w := got.items[0].decision, want.items[0].decision
			g.Receipt, w.Receipt = algorithms.Receipt{}, algorithms.Receipt{}
			if g != w {
				t.Fatalf("seed %d, trace %d, step %d, op %d of %v: got %+v, want %+v", seed, trace, i, op, limit, g, w)
			}
		}
	}
}

// No caller can ask for a backfill, with a receipt or without one.
func TestBackfillIsNotForCallers(t *testing.T) {
	r := newRedis(t, redistest.Start(t).Client(), nil)
	checks := checksFor(algorithms.TokenBucket(9, time.Hour), "usr=1")
	for range 2 {
		backfill := []algorithms.Check{checks[0]}
		backfill[0].Op = algorithms.Op(step.Backfill)
		if err := r.Allow(t.Context(), backfill); !errors.Is(err, algorithms.ErrInvalid) {
			t.Errorf("got %v, want ErrInvalid", err)
		}
		if err := r.Allow(t.Context(), checks); err != nil {
			t.Fatal(err)
		}
	}
}
