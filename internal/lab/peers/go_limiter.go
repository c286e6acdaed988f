package main

import (
	"context"
	"net/http"
	"time"

	limiters "github.com/sethvargo/go-limiter"
	"github.com/sethvargo/go-limiter/httplimit"
	"github.com/sethvargo/go-limiter/memorystore"
)

var goLimiterLocal = quote{"Memory is the fastest store, but only works on a single container/virtual machine since there's no way to share the state.", "README.md"}

var goLimiter = library{
	name: "sethvargo/go-limiter", slug: "go-limiter", module: "github.com/sethvargo/go-limiter", store: "memory",
	open: func(t *trial, q quota) (*limiter, error) {
		byClient := func(r *http.Request) (string, error) { return r.Header.Get(clientHeader), nil }
		h, err := goLimiterBy(t, q, byClient, served)
		if err != nil {
			return nil, err
		}
		return overHTTP(h), nil
	},
	byAddress: func(t *trial, q quota, next http.Handler) (http.Handler, error) {
		return goLimiterBy(t, q, httplimit.IPKeyFunc(), next)
	},
	absent: []string{"several", "burst", "instances", "outage", "outage-limit", "refund"},
	says: map[string]quote{
		"several":      {"Take attempts to remove a token from the named key.", "memorystore/store.go"},
		"wait":         {"The middleware automatically set the following headers, conforming to the latest RFCs:", "README.md"},
		"burst":        {"Take attempts to remove a token from the named key.", "memorystore/store.go"},
		"instances":    goLimiterLocal,
		"outage":       goLimiterLocal,
		"outage-limit": goLimiterLocal,
		"refund":       {"Take attempts to remove a token from the named key.", "memorystore/store.go"},
	},
}

// goLimiterBy forgets keys after two windows.
func goLimiterBy(t *trial, q quota, key httplimit.KeyFunc, next http.Handler) (http.Handler, error) {
	var store limiters.Store
	store, err := memorystore.New(&memorystore.Config{
		Tokens: uint64(q.requests), Interval: q.window, SweepInterval: time.Second, SweepMinTTL: 2 * q.window,
	})
	if err != nil {
		return nil, err
	}
	t.owner.Cleanup(func() { _ = store.Close(context.Background()) })
	m, err := httplimit.NewMiddleware(store, key)
	if err != nil {
		return nil, err
	}
	return m.Handle(next), nil
}
