// What does Ahead save, if clients are far from their limits and Redis is 2 ms away?

package main

import (
	"context"
	"fmt"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/algorithms/shared"
	"github.com/penstock-go/penstock/internal/lab/nottest"
)

func aheadMeasures() (all []measure) {
	for _, callers := range []int{1, 64, 256} {
		all = append(all, measure{
			name:    fmt.Sprintf("redis-ahead-%d", callers),
			title:   fmt.Sprintf("Redis over %s, clients far from their limits, with Ahead: 25", far.title()),
			at:      plural(callers, "caller"),
			plan:    plan{callers: callers, keys: 10_000, quota: perMinute, network: far, warmUp: second / 10, lasts: second, sampled: true, onServer: true},
			figures: []figure{checksPerSecond, p50, p99, serverCPU},
			contestants: []contestant{
				{us, loaded(onRedisAhead)},
				{"penstock without Ahead", loaded(onRedis)},
				{"redis_rate", loaded(redisRate())},
				{"rueidis", loaded(viaRueidis)},
			},
			long: true,
		})
	}
	return all
}

// onRedisAhead counts in Redis, ahead of it where a client is far from its limit. It returns when the limiter is certain
// how many instances there are, which takes ten seconds.
func onRedisAhead(ctx context.Context, s *stage, q quota) func() take {
	limiter, limit := newShared(s, shared.Options{Ahead: 25}), algorithms.TokenBucket(q.requests, q.window)
	for begin := time.Now(); limiter.Stats().Ahead.Admitted == 0 && q.requests > 100; time.Sleep(100 * time.Millisecond) {
		nottest.Must(algorithms.Allow(ctx, limiter, "warm", limit))
		if time.Since(begin) > time.Minute {
			s.Fatalf("nothing was admitted ahead")
		}
	}
	return takesOf(limiter, limit)
}
