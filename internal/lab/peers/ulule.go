package main

import (
	"net/http"
	"time"

	ulule "github.com/ulule/limiter/v3"
	"github.com/ulule/limiter/v3/drivers/middleware/stdlib"
	ululememory "github.com/ulule/limiter/v3/drivers/store/memory"
	ululeredis "github.com/ulule/limiter/v3/drivers/store/redis"
)

// What ulule/limiter's documentation says, whatever the store.
var (
	ululeCounts = quote{"rely on [TTL](http://redis.io/commands/ttl) and incrementing the rate limit on each request.", "README.md"}
	ululeAdds   = quote{"Increment increments the limit by given count & gives back the new limit for given identifier", "limiter.go"}
	ululeOne    = quote{"Then, create the limiter instance which takes the store and the rate as arguments.", "README.md"}
	ululeWait   = quote{"Currently, we only need to return `429` and `X-Ratelimit-*` headers", "README.md"}
	ululeReset  = quote{"Reset sets the limit for given identifier to zero.", "limiter.go"}
	ululePanics = quote{"DefaultErrorHandler is the default ErrorHandler used by a new Middleware.", "drivers/middleware/stdlib/options.go"}
	ululeForged = quote{"By default, limiter doesn't trust any of those headers", "README.md"}
)

var ululeMemory = library{
	name: "ulule/limiter", slug: "ulule-memory", module: "github.com/ulule/limiter/v3", store: "memory",
	open: func(_ *trial, q quota) (*limiter, error) { return ululeBy(ululeLocal(), q), nil },
	byAddress: func(_ *trial, q quota, next http.Handler) (http.Handler, error) {
		return ululeByAddress(ululeLocal(), q, next), nil
	},
	absent: []string{"denial", "several", "wait", "burst", "instances", "outage", "outage-limit", "refund"},
	says: map[string]quote{
		"denial": ululeAdds, "several": ululeOne, "wait": ululeWait, "burst": ululeAdds, "forged": ululeForged,
		"instances":    {"In-Memory: rely on a fork of [go-cache]", "README.md"},
		"outage":       {"In-Memory: rely on a fork of [go-cache]", "README.md"},
		"outage-limit": {"In-Memory: rely on a fork of [go-cache]", "README.md"},
		"refund":       ululeReset,
	},
}

var ululeRedis = library{
	name: "ulule/limiter", slug: "ulule-redis", module: "github.com/ulule/limiter/v3", store: "Redis",
	open: func(t *trial, q quota) (*limiter, error) {
		store, err := ululeredis.NewStore(t.client())
		if err != nil {
			return nil, err
		}
		return ululeBy(store, q), nil
	},
	byAddress: func(t *trial, q quota, next http.Handler) (http.Handler, error) {
		store, err := ululeredis.NewStore(t.client())
		if err != nil {
			return nil, err
		}
		return ululeByAddress(store, q, next), nil
	},
	absent: []string{"denial", "several", "wait", "burst", "outage", "outage-limit", "refund"},
	shown:  []string{"outage", "outage-limit"},
	says: map[string]quote{
		"denial": ululeCounts, "several": ululeOne, "wait": ululeWait, "burst": ululeAdds, "forged": ululeForged,
		"outage": ululePanics, "outage-limit": ululePanics, "refund": ululeReset,
	},
}

// ululeLocal forgets keys every second.
func ululeLocal() ulule.Store {
	return ululememory.NewStoreWithOptions(ulule.StoreOptions{Prefix: ulule.DefaultPrefix, CleanUpInterval: time.Second})
}

func ululeBy(store ulule.Store, q quota) *limiter {
	byClient := stdlib.WithKeyGetter(func(r *http.Request) string { return r.Header.Get(clientHeader) })
	return overHTTP(stdlib.NewMiddleware(ulule.New(store, ululeRate(q)), byClient).Handler(served))
}

func ululeByAddress(store ulule.Store, q quota, next http.Handler) http.Handler {
	return stdlib.NewMiddleware(ulule.New(store, ululeRate(q))).Handler(next)
}

func ululeRate(q quota) ulule.Rate { return ulule.Rate{Period: q.window, Limit: int64(q.requests)} }
