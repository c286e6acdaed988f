package main

import (
	"context"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/algorithms/shared"
	"github.com/penstock-go/penstock/internal/lab/nottest"
)

// onRedis counts in Redis.
func onRedis(_ context.Context, s *stage, q quota) func() take {
	return takesOf(newShared(s, shared.Options{}), algorithms.TokenBucket(q.requests, q.window))
}

// newShared returns a shared limiter that ends with the stage. Its deadline is long,
// so that a slow machine does not count as an outage.
func newShared(s *stage, o shared.Options) *shared.Limiter {
	o.Deadline = time.Minute
	limiter := nottest.Must(shared.New(s.client(), &o))
	s.Cleanup(func() { _ = limiter.Close() })
	s.shared = append(s.shared, limiter)
	return limiter
}

// inMemory counts in a Memory, with room for all keys of the benchmark.
func inMemory(_ context.Context, _ *stage, q quota) func() take {
	limiter := algorithms.NewMemory(&algorithms.MemoryOptions{MaxKeys: 2_000_000})
	return takesOf(limiter, algorithms.TokenBucket(q.requests, q.window))
}

// takesOf makes takes of one unit. Each caller reuses a slice of its own, as the
// middleware does.
func takesOf(limiter algorithms.Limiter, limit algorithms.Limit) func() take {
	return func() take {
		checks := []algorithms.Check{{Policy: "clients", Limit: limit, Cost: 1}}
		return func(ctx context.Context, key string) (bool, error) {
			checks[0].Key = key
			err := limiter.Allow(ctx, checks)
			return err == nil && algorithms.Allowed(checks), err
		}
	}
}
