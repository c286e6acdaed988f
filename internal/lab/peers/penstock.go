package main

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/algorithms/shared"
	"github.com/penstock-go/penstock/keyfunc"
	ratelimit "github.com/penstock-go/penstock/middleware"
)

var penstockMemory = library{
	name: "penstock", slug: "penstock-memory", store: "memory",
	open: func(_ *trial, q quota) (*limiter, error) { return penstock(algorithms.NewMemory(nil), q) },
	byAddress: func(_ *trial, q quota, next http.Handler) (http.Handler, error) {
		return penstockByAddress(algorithms.NewMemory(nil), q, next)
	},
	absent: []string{"instances", "outage", "outage-limit"},
	says: map[string]quote{
		"instances":    {"Memory limits within this process.", "algorithms/memory.go"},
		"outage":       {"Memory limits within this process.", "algorithms/memory.go"},
		"outage-limit": {"Memory limits within this process.", "algorithms/memory.go"},
	},
}

var penstockRedis = library{
	name: "penstock", slug: "penstock-redis", store: "Redis",
	open: func(t *trial, q quota) (*limiter, error) {
		l, err := shared.New(t.client(), nil)
		if err != nil {
			return nil, err
		}
		t.owner.Cleanup(func() { _ = l.Close() })
		return penstock(l, q)
	},
	byAddress: func(t *trial, q quota, next http.Handler) (http.Handler, error) {
		l, err := shared.New(t.client(), nil)
		if err != nil {
			return nil, err
		}
		t.owner.Cleanup(func() { _ = l.Close() })
		return penstockByAddress(l, q, next)
	},
}

func penstockByAddress(l algorithms.Limiter, q quota, next http.Handler) (http.Handler, error) {
	m, err := ratelimit.New(l, nil, ratelimit.Policy{Name: "api", Limit: bucketOf(q)})
	if err != nil {
		return nil, err
	}
	return m.Handler(next), nil
}

func bucketOf(q quota) algorithms.Limit { return algorithms.TokenBucket(int64(q.requests), q.window) }

func penstock(l algorithms.Limiter, q quota) (*limiter, error) {
	byClient, err := ratelimit.New(l, nil, ratelimit.Policy{Name: "api", Key: keyfunc.Header(clientHeader), Limit: bucketOf(q), Cost: costOf})
	if err != nil {
		return nil, err
	}
	byPair, err := ratelimit.New(l, nil, ratelimit.Policy{
		Name: "pairs", Key: keyfunc.Join(keyfunc.Header(clientHeader), keyfunc.Header(secondHeader)), Limit: bucketOf(q),
	})
	if err != nil {
		return nil, err
	}
	h, pairs := byClient.Handler(served), byPair.Handler(served)
	lim := overHTTP(h)
	lim.takeN = func(key string, n int) (answer, error) { return ask(h, clientHeader, key, costHeader, strconv.Itoa(n)) }
	lim.pair = func(a, b string) (answer, error) { return ask(pairs, clientHeader, a, secondHeader, b) }
	lim.both = func(first, second string, tight int) (bool, error) {
		checks := []algorithms.Check{
			{Policy: "api", Key: "hdr.x-client=" + first, Limit: bucketOf(q), Cost: 1}, // the handler's key
			{Policy: "tight", Key: second, Limit: algorithms.TokenBucket(int64(tight), time.Hour), Cost: 1},
		}
		err := l.Allow(context.Background(), checks)
		return algorithms.Allowed(checks), err
	}
	lim.borrow = func(key string, n int) (bool, func(int) error, error) {
		taken := []algorithms.Check{{Policy: "loans", Key: key, Limit: bucketOf(q), Cost: int64(n)}}
		err := l.Allow(context.Background(), taken)
		return algorithms.Allowed(taken), func(n int) error {
			taken[0].Op, taken[0].Cost = algorithms.Return, int64(n)
			return l.Allow(context.Background(), taken)
		}, err
	}
	return lim, nil
}

func costOf(r *http.Request) int64 {
	n, err := strconv.ParseInt(r.Header.Get(costHeader), 10, 64)
	if err != nil {
		return 1
	}
	return n
}
