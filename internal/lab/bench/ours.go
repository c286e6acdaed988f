package main

import (
	"context"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/algorithms/shared"
)

// A limited is an algorithm: it makes a limit from a quota.
type limited func(requests int64, window time.Duration) algorithms.Limit

// onRedis counts in Redis under a limit of the given kind.
func onRedis(kind limited) setup {
	return func(_ context.Context, s *stage, q quota) (func() take, error) {
		limiter, err := newShared(s, s.client(), shared.Options{})
		return takesOf(s, limiter, kind(q.requests, q.window), algorithms.Shared), err
	}
}

// newShared returns a shared limiter that ends with the stage. Its deadline is long,
// so that a slow machine does not count as an outage.
func newShared(s *stage, client shared.Client, o shared.Options) (*shared.Limiter, error) {
	o.Deadline = time.Minute
	limiter, err := shared.New(client, &o)
	if err != nil {
		return nil, err
	}
	s.onClose(func() { _ = limiter.Close() })
	s.shared = append(s.shared, limiter)
	return limiter, nil
}

// inMemory counts in a Memory, with room for all keys of the benchmark.
func inMemory(_ context.Context, s *stage, q quota) (func() take, error) {
	limiter := algorithms.NewMemory(&algorithms.MemoryOptions{MaxKeys: 2_000_000})
	return takesOf(s, limiter, algorithms.TokenBucket(q.requests, q.window), algorithms.Local), nil
}

// takesOf makes takes of one unit, which source is to decide. Each caller reuses a slice
// of its own, as the middleware does.
func takesOf(s *stage, limiter algorithms.Limiter, limit algorithms.Limit, source algorithms.Source) func() take {
	return func() take {
		checks := []algorithms.Check{{Policy: "clients", Limit: limit, Cost: 1}}
		return func(ctx context.Context, key string) (bool, error) {
			checks[0].Key = key
			if err := limiter.Allow(ctx, checks); err != nil {
				return false, err
			}
			if checks[0].Decision.Source != source {
				s.astray.Add(1)
			}
			return algorithms.Allowed(checks), nil
		}
	}
}
