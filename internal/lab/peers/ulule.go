package main

import (
	"net/http"

	ulule "github.com/ulule/limiter/v3"
	"github.com/ulule/limiter/v3/drivers/middleware/stdlib"
	ululeredis "github.com/ulule/limiter/v3/drivers/store/redis"

	"github.com/penstock-go/penstock/internal/lab/nottest"
)

var ululeLimiter = library{
	name: "ulule/limiter", slug: "ulule", module: "github.com/ulule/limiter/v3", store: "Redis",
	handler: func(t *trial, q quota, by keyed) http.Handler {
		store := nottest.Must(ululeredis.NewStore(t.client()))
		m := stdlib.NewMiddleware(ulule.New(store, ulule.Rate{Period: q.window, Limit: int64(q.requests)}))
		if len(by) > 0 {
			m.KeyGetter = func(r *http.Request) string { return r.Header.Get(by[0]) }
		}
		return m.Handler(served)
	},
	absent: []string{"denial", "wait", "burst"},
	says: map[string]quote{
		"denial": {"rely on [TTL](http://redis.io/commands/ttl) and incrementing the rate limit on each request.", "README.md"},
		"wait":   {"Currently, we only need to return `429` and `X-Ratelimit-*` headers", "README.md"},
		"burst":  {"Increment increments the limit by given count & gives back the new limit for given identifier", "limiter.go"},
		"forged": {"By default, limiter doesn't trust any of those headers", "README.md"},
	},
}
