package main

import (
	"context"
	"net/http"

	goratelimit "github.com/krishna-kudari/ratelimit"
	"github.com/krishna-kudari/ratelimit/middleware"
)

// What krishna-kudari/ratelimit's documentation says, whatever the store.
var (
	kudariOne    = quote{"Allow checks whether a single request identified by key should be allowed.", "limiter.go"}
	kudariWait   = quote{"result.RetryAfter tells the client exactly when to try again", "README.md"}
	kudariLocal  = quote{"ideal for tests and single-process deployments.", "sugar.go"}
	kudariForged = quote{"It checks X-Forwarded-For, X-Real-IP, then falls back to RemoteAddr.", "middleware/http.go"}
	kudariReset  = quote{"Reset clears all rate limit state for the given key.", "limiter.go"}
	kudariOpen   = quote{"If true (default), requests are allowed on errors.", "limiter.go"}
)

var kudariMemory = library{
	name: "krishna-kudari/ratelimit", slug: "kudari-memory", module: "github.com/krishna-kudari/ratelimit", store: "memory",
	open: func(_ *trial, q quota) (*limiter, error) { return kudariBy(q) },
	byAddress: func(_ *trial, q quota, next http.Handler) (http.Handler, error) {
		return kudariByAddress(q, next)
	},
	absent: []string{"several", "expiry", "instances", "outage", "outage-limit", "forged", "refund"},
	shown:  []string{"forged"},
	says: map[string]quote{
		"several": kudariOne, "wait": kudariWait, "burst": kudariWait, "forged": kudariForged, "refund": kudariReset,
		"expiry":    {"a 30KB array replaces a map that would grow to 50GB under a billion-key DDoS attack.", "README.md"},
		"instances": kudariLocal, "outage": kudariLocal, "outage-limit": kudariLocal,
	},
}

var kudariRedis = library{
	name: "krishna-kudari/ratelimit", slug: "kudari-redis", module: "github.com/krishna-kudari/ratelimit", store: "Redis",
	open: func(t *trial, q quota) (*limiter, error) { return kudariBy(q, goratelimit.WithRedis(t.client())) },
	byAddress: func(t *trial, q quota, next http.Handler) (http.Handler, error) {
		return kudariByAddress(q, next, goratelimit.WithRedis(t.client()))
	},
	absent: []string{"several", "outage-limit", "forged", "refund"},
	shown:  []string{"outage-limit", "forged"},
	says: map[string]quote{
		"several": kudariOne, "wait": kudariWait, "burst": kudariWait, "forged": kudariForged, "refund": kudariReset,
		"outage": kudariOpen, "outage-limit": kudariOpen,
	},
}

// kudariBy limits with a fixed window, which is what New makes.
func kudariBy(q quota, options ...goratelimit.Option) (*limiter, error) {
	counts, err := goratelimit.NewFixedWindow(int64(q.requests), int64(q.window.Seconds()), options...)
	if err != nil {
		return nil, err
	}
	l := overHTTP(middleware.RateLimit(counts, middleware.KeyByHeader(clientHeader))(served))
	l.takeN = func(key string, n int) (answer, error) {
		result, err := counts.AllowN(context.Background(), key, n)
		return answer{allowed: result.Allowed, remaining: int(result.Remaining), wait: result.RetryAfter}, err
	}
	return l, nil
}

func kudariByAddress(q quota, next http.Handler, options ...goratelimit.Option) (http.Handler, error) {
	counts, err := goratelimit.NewFixedWindow(int64(q.requests), int64(q.window.Seconds()), options...)
	if err != nil {
		return nil, err
	}
	return middleware.RateLimit(counts, middleware.KeyByIP)(next), nil
}
