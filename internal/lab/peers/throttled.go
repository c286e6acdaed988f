package main

import (
	"net/http"

	"github.com/throttled/throttled/v2"
	"github.com/throttled/throttled/v2/store/goredisstore.v9"

	"github.com/penstock-go/penstock/internal/lab/nottest"
)

var throttledGCRA = library{
	name: "throttled/throttled", slug: "throttled", module: "github.com/throttled/throttled/v2", store: "Redis", pairs: true,
	handler: throttledHandler,
	open: func(t *trial, q quota) take {
		byHandler, rate := overHTTP(throttledHandler(t, q, byClient)), throttledRate(t, q)
		return func(key string, n int) (answer, error) {
			if n == 1 {
				return byHandler(key, n)
			}
			limited, res, err := rate.RateLimitCtx(t.Context(), key+"\n", n) // the handler's key
			return answer{allowed: !limited, remaining: res.Remaining, wait: res.RetryAfter}, err
		}
	},
	costs: true,
	shown: []string{"crowd", "instances"},
	says: map[string]quote{
		"remaining": {"Remaining is the maximum number of requests that could be permitted instantaneously for this key given the current state.", "rate.go"},
		"wait":      {"RetryAfter is the time until the next request will be permitted.", "rate.go"},
		"keys":      {"Vary by this list of header names, read from the net/http.Request Header field.", "varyby.go"},
		"crowd":     {"Maximum number of times to retry SetIfNotExists/CompareAndSwap operations before returning an error.", "rate.go"},
		"instances": {"Maximum number of times to retry SetIfNotExists/CompareAndSwap operations before returning an error.", "rate.go"},
	},
}

func throttledRate(t *trial, q quota) *throttled.GCRARateLimiterCtx {
	store := nottest.Must(goredisstore.NewCtx(t.client(), "throttled:"))
	limit := throttled.RateQuota{MaxRate: throttled.PerDuration(q.requests, q.window), MaxBurst: q.requests - 1}
	return nottest.Must(throttled.NewGCRARateLimiterCtx(store, limit))
}

func throttledHandler(t *trial, q quota, by keyed) http.Handler {
	l := throttled.HTTPRateLimiterCtx{RateLimiter: throttledRate(t, q), VaryBy: &throttled.VaryBy{RemoteAddr: len(by) == 0, Headers: by}}
	return l.RateLimit(served)
}
