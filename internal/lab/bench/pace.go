// The cost of a check by pace: how often each key is used, and how many keys there
// are. At 64 checks per second of each of 1 000 000 keys, a second would have 64
// million checks, more than a machine can make. But the cost of a check depends only
// on the states that it finds, and these depend on the limiter's clock. So the clock
// moves by 1 s / (64 * 1 000 000) = 15 ns per check. If a machine makes 1 000 000
// checks per second, the clock runs at a 64th of the real speed. Each check then finds
// the states that it would find at the wanted pace.

package main

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/algorithms/shared"
)

// A pace is how often each key is used per second, and how many keys there are.
type pace struct{ perSecond, keys int }

var paceMeasures = []measure{{
	name:    "pace-memory",
	title:   "Memory, cost of a check by pace and keys",
	plan:    plan{callers: 1, quota: paceQuota, lasts: second / 10},
	figures: []figure{perCheck},
	contestants: slices.Concat(
		atPaces(algorithms.TokenBucket, bucketPaces, pacedMemory),
		atPaces(algorithms.SlidingWindowLog, logPaces, pacedMemory),
	),
}, {
	name:    "pace-redis",
	title:   "Redis, cost of a check by pace and keys, 256 callers",
	plan:    plan{callers: 256, quota: paceQuota, lasts: second / 2, onServer: true},
	once:    true,
	figures: []figure{serverCPU},
	contestants: slices.Concat(
		atPaces(algorithms.TokenBucket, bucketPaces, pacedRedis),
		atPaces(algorithms.SlidingWindowLog, logPaces, pacedRedis),
	),
}}

// paceQuota is above all paces: it admits everything, so that logs are as long as
// possible.
var paceQuota = quota{100, time.Second}

var bucketPaces = []pace{
	{1, 1_000}, {8, 1_000}, {64, 1_000},
	{1, 10_000}, {8, 10_000}, {64, 10_000},
	{1, 100_000}, {8, 100_000}, {64, 100_000},
	{1, 1_000_000}, {8, 1_000_000}, {64, 1_000_000},
}

var logPaces = []pace{
	{1, 1_000}, {8, 1_000}, {64, 1_000},
	{1, 10_000}, {8, 10_000}, {64, 10_000},
}

// atPaces returns a contestant per pace.
func atPaces(kind limited, paces []pace, on func(limited, pace) setup) []contestant {
	var points []contestant
	for _, at := range paces {
		name := fmt.Sprintf("%s, %s keys, %d/s each", kind(1, time.Second).Algorithm(), thousands(at.keys), at.perSecond)
		points = append(points, contestant{name, at.keysOf(loaded(on(kind, at)))})
	}
	return points
}

// keysOf replaces the plan's number of keys by the pace's number.
func (at pace) keysOf(begin start) start {
	return func(ctx context.Context, s *stage, p plan) (round, error) {
		p.keys = at.keys
		return begin(ctx, s, p.in(s))
	}
}

// step returns how far the clock moves per check.
func (at pace) step() time.Duration {
	return max(1, time.Second/time.Duration(at.perSecond*at.keys))
}

func pacedMemory(kind limited, at pace) setup {
	return func(_ context.Context, _ *stage, q quota) (func() take, error) {
		var checks atomic.Int64
		begin, step := time.Now(), at.step()
		limiter := algorithms.NewMemory(&algorithms.MemoryOptions{
			MaxKeys: 2_000_000,
			Now:     func() time.Time { return begin.Add(time.Duration(checks.Add(1)) * step) },
		})
		return takesOf(limiter, kind(q.requests, q.window)), nil
	}
}

func pacedRedis(kind limited, at pace) setup {
	return func(_ context.Context, s *stage, q quota) (func() take, error) {
		counted := new(countedLimiter)
		begin, step := time.Now(), at.step()
		limiter, err := newShared(s, s.client(), shared.Options{
			Now: func() time.Time { return begin.Add(time.Duration(counted.checks.Load()) * step) },
		})
		counted.Limiter = limiter
		return takesOf(counted, kind(q.requests, q.window)), err
	}
}

// A countedLimiter counts its checks.
type countedLimiter struct {
	algorithms.Limiter
	checks atomic.Int64
}

func (l *countedLimiter) Allow(ctx context.Context, checks []algorithms.Check) error {
	l.checks.Add(int64(len(checks)))
	return l.Limiter.Allow(ctx, checks)
}
