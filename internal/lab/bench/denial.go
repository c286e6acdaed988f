// What does a denial cost that the instance remembers?

package main

import (
	"context"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/algorithms/shared"
	"github.com/penstock-go/penstock/keyfunc"
	"github.com/penstock-go/penstock/middleware"
)

var denialMeasure = measure{
	name:    "denials",
	title:   "Middleware with Redis, a denial that the instance remembers, with its body",
	plan:    plan{callers: 1, keys: 1, quota: quota{1, 24 * time.Hour}, lasts: instant, onServer: true, key: address},
	figures: []figure{perCheck, allocations, commands},
	contestants: []contestant{
		{us, loaded(penstockSharedHTTP)},
	},
	most: map[figure]float64{allocations: 6},
}

// penstockSharedHTTP counts in Redis by one policy, and remembers denials.
func penstockSharedHTTP(_ context.Context, s *stage, q quota) (func() take, error) {
	limiter, err := newShared(s, s.client(), shared.Options{})
	if err != nil {
		return nil, err
	}
	return penstockHTTP(observed, limiter, ratelimit.Policy{
		Name: "clients", Key: keyfunc.IP(nil), Limit: algorithms.TokenBucket(q.requests, q.window),
	})
}
