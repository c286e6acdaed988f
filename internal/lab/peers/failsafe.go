package main

import (
	"net/http"

	"github.com/failsafe-go/failsafe-go/ratelimiter"
)

var failsafeNoKey = quote{"RateLimiter is a Policy that can control the rate of executions as a way of preventing system overload.", "ratelimiter/ratelimiter.go"}

// failsafe is a map of bursty limiters.
var failsafe = library{
	name: "failsafe-go", slug: "failsafe", module: "github.com/failsafe-go/failsafe-go", store: "memory",
	open: func(_ *trial, q quota) (*limiter, error) {
		limiters := &perKey[ratelimiter.RateLimiter[*http.Response]]{make: func(string) ratelimiter.RateLimiter[*http.Response] {
			return ratelimiter.NewBursty[*http.Response](uint(q.requests), q.window)
		}}
		takeN := func(key string, n int) (answer, error) {
			return answer{allowed: limiters.of(key).TryAcquirePermits(uint(n)), remaining: untold, wait: untold}, nil
		}
		return &limiter{take: func(key string) (answer, error) { return takeN(key, 1) }, takeN: takeN}, nil
	},
	absent: []string{"several", "remaining", "wait", "expiry", "instances", "outage", "outage-limit", "forged", "keys", "refund"},
	says: map[string]quote{
		"":          failsafeNoKey,
		"remaining": {"TryAcquirePermit tries to acquire a permit to perform an execution against the rate limiter, returning immediately without waiting.", "ratelimiter/ratelimiter.go"},
		"wait":      {"the caller is expected to wait before acting on the permit, as long as it's less than the maxWaitTime.", "ratelimiter/ratelimiter.go"},
	},
}
