package algorithms_test

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/internal/redistest"
)

// Of a large log of unlike costs, Redis reads entries from the end that is
// nearer; Memory reads them in order. Both know when any cost fits.
func TestLargeLogTwins(t *testing.T) {
	t.Parallel()
	now := int64(1_763_729_430_000_000)
	clock := func() time.Time { return time.UnixMicro(now) }
	redis := newRedis(t, redistest.Start(t).Client(), &algorithms.RedisOptions{Now: clock, Timeout: 10 * time.Second})
	memory := newMemory(t, &algorithms.MemoryOptions{Now: exceptForSweeps(clock)})
	limit := algorithms.SlidingWindowLog(1_000, time.Minute)
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 1))
	both := func(checks ...algorithms.Check) (got, want []algorithms.Check) {
		t.Helper()
		got, want = append(got, checks...), append(want, checks...)
		for l, asked := range map[algorithms.Limiter][]algorithms.Check{redis: got, memory: want} {
			if err := l.Allow(context.Background(), asked); err != nil {
				t.Fatal(err)
			}
		}
		return got, want
	}
	check := algorithms.Check{Policy: "p", Key: "usr=1", Limit: limit}
	for left := limit.Burst(); left > 0; left -= check.Cost {
		check.Cost = min(left, 1+r.Int64N(1+r.Int64N(4)))
		both(check)
		now += 1 + r.Int64N(20_000)
	}
	for cost := range limit.Burst() {
		check.Cost = cost + 1
		got, want := both(check)
		g, w := got[0].Decision, want[0].Decision
		if g.Allowed || w.Allowed || g.RetryAfter != w.RetryAfter || g.UnitAfter != w.UnitAfter || g.RetryAfter <= 0 {
			t.Fatalf("seed %d, cost %d: got %+v, want %+v, both denied", seed, check.Cost, g, w)
		}
	}
}
