// The cost of a request with one to five policies.

package main

import (
	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/keyfunc"
	"github.com/penstock-go/penstock/middleware"
)

var policyMeasures = []measure{{
	name:  "policies",
	title: "Redis, a request with one to five policies, one caller",
	plan: plan{
		callers: 1, keys: 1_000, quota: perSecond, key: address,
		lasts: second / 2, sampled: true, onServer: true,
	},
	times:   closeTimes,
	figures: []figure{checksPerSecond, p50, p99, serverCPU, allocations},
	contestants: []contestant{
		{"one policy", loaded(penstockRedisHTTP(1))},
		{"two policies", loaded(penstockRedisHTTP(2))},
		{"three policies", loaded(penstockRedisHTTP(3))},
		{"five policies", loaded(penstockRedisHTTP(5))},
		{"redis_rate, asked once", loaded(redisRateTimes(1))},
		{"redis_rate, asked three times", loaded(redisRateTimes(3))},
	},
	bars: []bar{{figure: p50, who: "three policies", against: []string{"one policy"}, atMost: 1.2, why: whyThreePolicies}},
}}

// policies returns the first n of five policies.
func policies(n int, q quota) []ratelimit.Policy {
	limit := algorithms.TokenBucket(q.requests, q.window)
	merchant := keyfunc.Header(merchantHeader)
	return []ratelimit.Policy{
		{Name: "merchant", Key: merchant, Limit: limit},
		{Name: "endpoint", Key: keyfunc.Join(merchant, keyfunc.Route()), Limit: limit},
		{Name: "global", Key: keyfunc.Const("all"), Limit: limit, Capacity: true},
		{Name: "address", Key: keyfunc.Join(merchant, keyfunc.IP(nil)), Limit: limit},
		{Name: "longer", Key: merchant, Limit: algorithms.TokenBucket(60*q.requests, 60*q.window)},
	}[:n]
}
