// What does the middleware cost a request that is counted in memory?

package main

import (
	"context"

	"github.com/go-chi/httprate"
	"github.com/sethvargo/go-limiter/httplimit"
	"github.com/ulule/limiter/v3"
	"github.com/ulule/limiter/v3/drivers/middleware/stdlib"
	ululememory "github.com/ulule/limiter/v3/drivers/store/memory"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/headers"
	"github.com/penstock-go/penstock/internal/lab/nottest"
	"github.com/penstock-go/penstock/keyfunc"
	"github.com/penstock-go/penstock/middleware"
)

var middlewareMeasure = measure{
	name:    "middleware",
	title:   "Middleware in memory, by IP, 10 000 addresses",
	plan:    plan{callers: 1, keys: 10_000, quota: perSecond, lasts: instant, key: address},
	times:   closeTimes,
	figures: []figure{perCheck, allocations, bytesPerCheck},
	contestants: []contestant{
		{us, loaded(penstockMemoryHTTP(ratelimit.Options{Headers: headers.XRateLimit}))},
		{"penstock, draft's headers, observed", loaded(penstockMemoryHTTP(observed))},
		{"httprate", loaded(httprateHTTP)},
		{"go-limiter", loaded(httplimitHTTP)},
		{"ulule/limiter", loaded(ululeHTTP)},
	},
	most: map[figure]float64{allocations: 3},
	why:  "The limiter takes a quarter of it, header fields a fifth, the key a seventh, and the copy of the request a tenth.",
}

func penstockMemoryHTTP(o ratelimit.Options) setup {
	return func(_ context.Context, _ *stage, q quota) func() take {
		m := nottest.Must(ratelimit.New(algorithms.NewMemory(nil), &o, ratelimit.Policy{
			Name: "clients", Key: keyfunc.IP(nil), Limit: algorithms.TokenBucket(q.requests, q.window),
		}))
		return handled(m.Handler(served))
	}
}

// httprateHTTP keys by the peer's address. Its README has chi resolve the
// address first, which costs more.
func httprateHTTP(_ context.Context, _ *stage, q quota) func() take {
	//lint:ignore SA1019 it is the cheapest key that does not trust headers
	limit := httprate.LimitBy(int(q.requests), q.window, httprate.KeyByIP)
	return handled(limit(served))
}

func httplimitHTTP(_ context.Context, s *stage, q quota) func() take {
	m := nottest.Must(httplimit.NewMiddleware(goLimiterStore(s, q), httplimit.IPKeyFunc()))
	return handled(m.Handle(served))
}

func ululeHTTP(_ context.Context, _ *stage, q quota) func() take {
	l := limiter.New(ululememory.NewStore(), limiter.Rate{Period: q.window, Limit: q.requests})
	return handled(stdlib.NewMiddleware(l).Handler(served))
}
