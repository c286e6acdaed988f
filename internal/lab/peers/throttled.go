package main

import (
	"context"
	"net/http"

	"github.com/throttled/throttled/v2"
	"github.com/throttled/throttled/v2/store/goredisstore.v9"
	"github.com/throttled/throttled/v2/store/memstore"
)

// What throttled's documentation says, whatever the store.
var (
	throttledOne       = quote{"RateLimitCtx checks whether a particular key has exceeded a rate limit.", "rate.go"}
	throttledError     = quote{"DefaultError is the default Error function for an HTTPRateLimiter. It returns a 500 status code with a generic message.", "http.go"}
	throttledRemaining = quote{"Remaining is the maximum number of requests that could be permitted instantaneously for this key given the current state.", "rate.go"}
	throttledWait      = quote{"RetryAfter is the time until the next request will be permitted.", "rate.go"}
	throttledPeek      = quote{`If quantity is 0, no update is performed allowing you to "peek" at the state of the RateLimiter for a given key.`, "rate.go"}
	throttledVary      = quote{"Vary by this list of header names, read from the net/http.Request Header field.", "varyby.go"}
	throttledLRU       = quote{"it uses an LRU algorithm to evict older keys to make room for newer ones.", "store/memstore/memstore.go"}
	throttledLocal     = quote{"It is stored in memory in the current process and thus doesn't share state with other rate limiters.", "store/memstore/memstore.go"}
)

var throttledMemory = library{
	name: "throttled/throttled", slug: "throttled-memory", module: "github.com/throttled/throttled/v2", store: "memory",
	open: func(_ *trial, q quota) (*limiter, error) {
		store, err := memstore.NewCtx(65536)
		if err != nil {
			return nil, err
		}
		return throttledBy(store, q)
	},
	byAddress: func(_ *trial, q quota, next http.Handler) (http.Handler, error) {
		store, err := memstore.NewCtx(65536)
		if err != nil {
			return nil, err
		}
		return throttledVarying(store, q, &throttled.VaryBy{RemoteAddr: true}, next)
	},
	absent: []string{"several", "expiry", "instances", "outage", "outage-limit", "refund"},
	says: map[string]quote{
		"several": throttledOne, "remaining": throttledRemaining, "wait": throttledWait, "expiry": throttledLRU, "instances": throttledLocal,
		"outage": throttledLocal, "outage-limit": throttledLocal, "keys": throttledVary, "refund": throttledPeek,
	},
}

var throttledRedis = library{
	name: "throttled/throttled", slug: "throttled-redis", module: "github.com/throttled/throttled/v2", store: "Redis",
	open: func(t *trial, q quota) (*limiter, error) {
		store, err := goredisstore.NewCtx(t.client(), "throttled:")
		if err != nil {
			return nil, err
		}
		return throttledBy(store, q)
	},
	byAddress: func(t *trial, q quota, next http.Handler) (http.Handler, error) {
		store, err := goredisstore.NewCtx(t.client(), "throttled:")
		if err != nil {
			return nil, err
		}
		return throttledVarying(store, q, &throttled.VaryBy{RemoteAddr: true}, next)
	},
	absent: []string{"crowd", "several", "instances", "outage", "outage-limit", "refund"},
	shown:  []string{"crowd", "instances", "outage", "outage-limit"},
	says: map[string]quote{
		"several": throttledOne, "remaining": throttledRemaining, "wait": throttledWait,
		"crowd":     {"Maximum number of times to retry SetIfNotExists/CompareAndSwap operations before returning an error.", "rate.go"},
		"instances": {"Maximum number of times to retry SetIfNotExists/CompareAndSwap operations before returning an error.", "rate.go"},
		"outage":    throttledError, "outage-limit": throttledError, "keys": throttledVary, "refund": throttledPeek,
	},
}

func throttledBy(store throttled.GCRAStoreCtx, q quota) (*limiter, error) {
	h, err := throttledVarying(store, q, &throttled.VaryBy{Headers: []string{clientHeader}}, served)
	if err != nil {
		return nil, err
	}
	pairs, err := throttledVarying(store, q, &throttled.VaryBy{Headers: []string{clientHeader, secondHeader}}, served)
	if err != nil {
		return nil, err
	}
	rate, err := throttled.NewGCRARateLimiterCtx(store, throttledQuota(q))
	if err != nil {
		return nil, err
	}
	l := overHTTP(h)
	l.pair = func(a, b string) (answer, error) { return ask(pairs, clientHeader, a, secondHeader, b) }
	l.takeN = func(key string, n int) (answer, error) {
		// The key under which the handler counts.
		limited, res, err := rate.RateLimitCtx(context.Background(), key+"\n", n)
		return answer{allowed: !limited, remaining: res.Remaining, wait: res.RetryAfter}, err
	}
	return l, nil
}

func throttledQuota(q quota) throttled.RateQuota {
	return throttled.RateQuota{MaxRate: throttled.PerDuration(q.requests, q.window), MaxBurst: q.requests - 1}
}

func throttledVarying(store throttled.GCRAStoreCtx, q quota, by *throttled.VaryBy, next http.Handler) (http.Handler, error) {
	rate, err := throttled.NewGCRARateLimiterCtx(store, throttledQuota(q))
	if err != nil {
		return nil, err
	}
	l := throttled.HTTPRateLimiterCtx{RateLimiter: rate, VaryBy: by}
	return l.RateLimit(next), nil
}
