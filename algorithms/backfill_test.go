package algorithms_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/internal/redistest"
)

var backfilled = []algorithms.Limit{
	algorithms.TokenBucket(7, time.Second).WithBurst(9),
	algorithms.LeakyBucket(3, time.Second).WithBurst(5),
	algorithms.SlidingWindowCounter(12, time.Second),
	algorithms.SlidingWindowLog(8, time.Second),
	algorithms.FixedWindow(6, time.Second),
}

// Redis and Memory backfill alike, whatever came before and comes after.
func TestBackfillTwins(t *testing.T) {
	t.Parallel()
	var now int64
	clock := func() time.Time { return time.UnixMicro(now) }
	redis := newRedis(t, redistest.Start(t).Client(), &algorithms.RedisOptions{Now: clock})
	memory := newMemory(t, &algorithms.MemoryOptions{Now: exceptForSweeps(clock)})
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 1))
	for trace := range 60 {
		now = 1_763_729_430_000_000 + r.Int64N(1e9)
		for step := range 40 {
			now += r.Int64N(600_000) - 20_000
			c := algorithms.Check{
				Policy: "p", Key: fmt.Sprintf("trace=%d", trace), Limit: backfilled[r.IntN(len(backfilled))], Cost: r.Int64N(6),
				Op: []algorithms.Op{algorithms.Take, algorithms.Take, algorithms.Force, algorithms.Grant}[r.IntN(4)],
			}
			if r.IntN(2) == 0 {
				c = algorithms.BackfillForTest(c, now+100_000-r.Int64N(2_500_000))
			}
			got, want := []algorithms.Check{c}, []algorithms.Check{c}
			if err := memory.Allow(context.Background(), want); err != nil {
				t.Fatal(err)
			}
			if err := redis.Allow(context.Background(), got); err != nil {
				t.Fatal(err)
			}
			g, w := got[0].Decision, want[0].Decision
			if g.Allowed != w.Allowed || g.Remaining != w.Remaining || g.RetryAfter != w.RetryAfter ||
				g.ResetAfter != w.ResetAfter || g.UnitAfter != w.UnitAfter {
				t.Fatalf("seed %d, trace %d, step %d, %v of %v: got %+v, want %+v", seed, trace, step, c.Op, c.Limit, g, w)
			}
		}
	}
}

// A backfill fills what is free, at its own instant, and makes no debt.
func TestBackfillFits(t *testing.T) {
	t.Parallel()
	now := time.UnixMicro(1_763_729_430_000_000) // at the beginning of a window of a second
	for _, limit := range backfilled {
		t.Run(limit.String(), func(t *testing.T) {
			at := now
			m := newMemory(t, &algorithms.MemoryOptions{Now: exceptForSweeps(func() time.Time { return at })})
			ask := func(c algorithms.Check) algorithms.Decision {
				t.Helper()
				checks := []algorithms.Check{c}
				if err := m.Allow(context.Background(), checks); err != nil {
					t.Fatal(err)
				}
				return checks[0].Decision
			}
			c := algorithms.Check{Policy: "p", Key: "k", Limit: limit, Cost: 2}
			ask(c)
			c.Cost = 1_000
			if d := ask(algorithms.BackfillForTest(c, now.UnixMicro())); d.Remaining != 0 {
				t.Errorf("got %d left, want none", d.Remaining)
			}
			c.Cost = 1
			d := ask(c)
			if one := limit.Window() / time.Duration(limit.Requests()); d.Allowed || (limit.Algorithm().Continuous() && d.RetryAfter > one+time.Microsecond) {
				t.Errorf("got %+v, want a denial and no debt", d)
			}
			// What was admitted two windows ago is nothing to a window.
			if limit.Algorithm().Continuous() {
				return
			}
			at = now.Add(4 * limit.Window())
			ask(algorithms.BackfillForTest(c, at.Add(-2*limit.Window()).UnixMicro()))
			c.Cost = 0
			if d := ask(c); d.Remaining != limit.Requests() {
				t.Errorf("got %d left, want %d", d.Remaining, limit.Requests())
			}
		})
	}
}

// Nobody can ask for one: its receipt is none that a limiter issues.
func TestBackfillIsNotForCallers(t *testing.T) {
	m := newMemory(t, nil)
	checks := []algorithms.Check{{Policy: "p", Key: "k", Limit: algorithms.TokenBucket(9, time.Hour), Cost: 1}}
	for range 2 { // without a receipt and with one
		backfill := []algorithms.Check{checks[0]}
		backfill[0].Op = algorithms.Renew + 1
		if err := m.Allow(context.Background(), backfill); err == nil {
			t.Error("got no error")
		}
		if err := m.Allow(context.Background(), checks); err != nil {
			t.Fatal(err)
		}
	}
}
