package main

import (
	"net/http"
	"strconv"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/algorithms/shared"
	"github.com/penstock-go/penstock/internal/lab/nottest"
	"github.com/penstock-go/penstock/keyfunc"
	ratelimit "github.com/penstock-go/penstock/middleware"
)

var penstockMemory = library{
	name: "penstock", slug: "penstock-memory", store: "memory", costs: true, pairs: true,
	handler: func(_ *trial, q quota, by keyed) http.Handler { return penstock(algorithms.NewMemory(nil), q, by) },
	says:    map[string]quote{"instances": {"Memory limits within this process.", "algorithms/memory.go"}},
}

var penstockRedis = library{
	name: "penstock", slug: "penstock-redis", store: "Redis", costs: true, pairs: true,
	handler: func(t *trial, q quota, by keyed) http.Handler {
		l := nottest.Must(shared.New(t.client(), nil))
		t.Cleanup(func() { _ = l.Close() })
		return penstock(l, q, by)
	},
}

func penstock(l algorithms.Limiter, q quota, by keyed) http.Handler {
	policy := ratelimit.Policy{Name: "api", Limit: algorithms.TokenBucket(int64(q.requests), q.window), Cost: costOf}
	var parts []keyfunc.Key
	for _, name := range by {
		parts = append(parts, keyfunc.Header(name))
	}
	if len(parts) > 0 {
		policy.Key = keyfunc.Join(parts...)
	}
	return nottest.Must(ratelimit.New(l, nil, policy)).Handler(served)
}

func costOf(r *http.Request) int64 {
	n, _ := strconv.ParseInt(r.Header.Get(costHeader), 10, 64)
	return max(1, n)
}
