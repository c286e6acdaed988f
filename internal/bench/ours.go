package main

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/algorithms/shared"
)

// limited makes limits of an algorithm from quotas.
type limited func(requests int64, window time.Duration) algorithms.Limit

// onRedis asks Redis under a limit of the given kind, on a client that adjust
// may change.
func onRedis(kind limited, adjust ...func(*redis.Options)) setup {
	return func(_ context.Context, s *stage, q quota) (func() take, error) {
		limiter, err := newShared(s, s.client(adjust...), shared.Options{})
		return takesOf(limiter, kind(q.requests, q.window)), err
	}
}

// leased asks Redis with leases.
func leased(_ context.Context, s *stage, q quota) (func() take, error) {
	limiter, err := newShared(s, s.client(), shared.Options{Lease: &shared.LeaseOptions{}})
	return takesOf(limiter, algorithms.TokenBucket(q.requests, q.window)), err
}

// newShared returns a shared limiter that ends with the stage. Its deadline is
// long: a slow machine is no outage.
func newShared(s *stage, client shared.Client, o shared.Options) (*shared.Limiter, error) {
	o.Deadline = time.Minute
	limiter, err := shared.New(client, &o)
	if err != nil {
		return nil, err
	}
	s.onClose(func() { _ = limiter.Close() })
	return limiter, nil
}

// inMemory asks Memory, with room for all keys of the benchmark.
func inMemory(_ context.Context, _ *stage, q quota) (func() take, error) {
	limiter := algorithms.NewMemory(&algorithms.MemoryOptions{MaxKeys: 2_000_000})
	return takesOf(limiter, algorithms.TokenBucket(q.requests, q.window)), nil
}

// takesOf takes one unit at a time. A caller has a slice of its own and uses it
// again, as the middleware does.
func takesOf(limiter algorithms.Limiter, limit algorithms.Limit) func() take {
	return func() take {
		checks := []algorithms.Check{{Policy: "clients", Limit: limit, Cost: 1}}
		return func(ctx context.Context, key string) (bool, error) {
			checks[0].Key = key
			if err := limiter.Allow(ctx, checks); err != nil {
				return false, err
			}
			return algorithms.Allowed(checks), nil
		}
	}
}
