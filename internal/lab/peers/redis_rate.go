package main

import (
	"github.com/go-redis/redis_rate/v10"
)

var redisRate = library{
	name: "go-redis/redis_rate", slug: "redis_rate", module: "github.com/go-redis/redis_rate/v10", store: "Redis",
	open: func(t *trial, q quota) (*limiter, error) {
		l := redis_rate.NewLimiter(t.client())
		limit := redis_rate.Limit{Rate: q.requests, Burst: q.requests, Period: q.window}
		takeN := func(key string, n int) (answer, error) {
			res, err := l.AllowN(t.ctx(), key, limit, n)
			if err != nil {
				return answer{}, err
			}
			return answer{allowed: res.Allowed > 0, remaining: res.Remaining, wait: res.RetryAfter}, nil
		}
		return &limiter{take: func(key string) (answer, error) { return takeN(key, 1) }, takeN: takeN}, nil
	},
	absent: []string{"several", "outage", "outage-limit", "forged", "refund"},
	shown:  []string{"outage", "outage-limit"},
	says: map[string]quote{
		"several":      {"Allow is a shortcut for AllowN(ctx, key, limit, 1).", "rate.go"},
		"remaining":    {"Remaining is the maximum number of requests that could be permitted instantaneously for this key given the current state.", "rate.go"},
		"wait":         {"RetryAfter is the time until the next request will be permitted.", "rate.go"},
		"burst":        {"RetryAfter is the time until the next request will be permitted.", "rate.go"},
		"outage":       {`if err != nil { panic(err) }`, "README.md"},
		"outage-limit": {`if err != nil { panic(err) }`, "README.md"},
		"forged":       {`limiter.Allow(ctx, "project:123", redis_rate.PerSecond(10))`, "README.md"},
		"refund":       {"Reset gets a key and reset all limitations and previous usages", "rate.go"},
	},
}
