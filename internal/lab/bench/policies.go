// What does a request with three policies cost in Redis?

package main

import (
	"context"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/algorithms/shared"
	"github.com/penstock-go/penstock/keyfunc"
	"github.com/penstock-go/penstock/middleware"
)

var policyMeasure = measure{
	name:  "policies",
	title: "Redis on this machine, a request with three policies, one caller",
	plan: plan{
		callers: 1, keys: 1_000, quota: perSecond, key: address,
		lasts: second / 2, sampled: true, onServer: true,
	},
	times:   closeTimes,
	figures: []figure{checksPerSecond, p50, p99, serverCPU, allocations},
	contestants: []contestant{
		{us, loaded(penstockRedisHTTP(3))},
		{"penstock, one policy", loaded(penstockRedisHTTP(1))},
		{"redis_rate, asked three times", loaded(redisRateThrice)},
	},
}

// policies returns the first n of three policies.
func policies(n int, q quota) []ratelimit.Policy {
	limit := algorithms.TokenBucket(q.requests, q.window)
	merchant := keyfunc.Header(merchantHeader)
	return []ratelimit.Policy{
		{Name: "merchant", Key: merchant, Limit: limit},
		{Name: "endpoint", Key: keyfunc.Join(merchant, keyfunc.Route()), Limit: limit},
		{Name: "global", Key: keyfunc.Const("all"), Limit: limit, Capacity: true},
	}[:n]
}

// penstockRedisHTTP limits by the first n policies.
func penstockRedisHTTP(n int) setup {
	return func(_ context.Context, s *stage, q quota) (func() take, error) {
		limiter, err := newShared(s, shared.Options{})
		if err != nil {
			return nil, err
		}
		return penstockHTTP(observed, limiter, policies(n, q)...)
	}
}

// redisRateThrice asks redis_rate once per policy, because it has no call for several
// policies. A later denial does not return the units of an earlier policy.
func redisRateThrice(ctx context.Context, s *stage, q quota) (func() take, error) {
	takes, err := redisRate()(ctx, s, q)
	if err != nil {
		return nil, err
	}
	ask := takes()
	return sameTake(func(ctx context.Context, key string) (bool, error) {
		allowed := true
		for _, policy := range []string{"merchant:", "endpoint:", "global:"} {
			ok, err := ask(ctx, policy+key)
			if err != nil {
				return false, err
			}
			allowed = allowed && ok
		}
		return allowed, nil
	}), nil
}
