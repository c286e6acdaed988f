package main

import (
	"github.com/go-redis/redis_rate/v10"
)

var redisRate = library{
	name: "go-redis/redis_rate", slug: "redis_rate", module: "github.com/go-redis/redis_rate/v10", store: "Redis",
	open: func(t *trial, q quota) take {
		l := redis_rate.NewLimiter(t.client())
		limit := redis_rate.Limit{Rate: q.requests, Burst: q.requests, Period: q.window}
		return func(key string, n int) (answer, error) {
			res, err := l.AllowN(t.Context(), key, limit, n)
			if err != nil {
				return answer{}, err
			}
			return answer{allowed: res.Allowed > 0, remaining: res.Remaining, wait: res.RetryAfter}, nil
		}
	},
	costs:  true,
	absent: []string{"forged"},
	says: map[string]quote{
		"remaining": {"Remaining is the maximum number of requests that could be permitted instantaneously for this key given the current state.", "rate.go"},
		"wait":      {"RetryAfter is the time until the next request will be permitted.", "rate.go"},
		"burst":     {"RetryAfter is the time until the next request will be permitted.", "rate.go"},
		"forged":    {`limiter.Allow(ctx, "project:123", redis_rate.PerSecond(10))`, "README.md"},
	},
}
