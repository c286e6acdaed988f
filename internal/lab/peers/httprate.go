package main

import (
	"net/http"
	"net/netip"

	"github.com/go-chi/chi/v5/middleware"
	"github.com/go-chi/httprate"
	httprateredis "github.com/go-chi/httprate-redis"

	"github.com/penstock-go/penstock/internal/lab/nottest"
)

var httprateMemory = library{
	name: "go-chi/httprate", slug: "httprate", module: "github.com/go-chi/httprate", store: "memory", costs: true, pairs: true,
	handler: func(_ *trial, q quota, by keyed) http.Handler { return httprateBy(q, by) },
	absent:  []string{"burst"},
	says: map[string]quote{
		"wait":      {"setHeader(w, l.headers.RetryAfter, strconv.Itoa(int(l.windowLength.Seconds()))) // RFC 6585", "limiter.go"},
		"burst":     {"Increment string // Default: X-RateLimit-Increment", "httprate.go"},
		"instances": {"Local in-memory backend (default)", "README.md"},
		"keys":      {`JoinKeys joins the results of several KeyFuncs into a single key with ":" separators`, "httprate.go"},
	},
}

var httprateRedis = library{
	name: "go-chi/httprate-redis", slug: "httprate-redis", module: "github.com/go-chi/httprate-redis", store: "Redis", costs: true, pairs: true,
	handler: func(t *trial, q quota, by keyed) http.Handler {
		addr := nottest.Must(netip.ParseAddrPort(t.redis()))
		return httprateBy(q, by, httprateredis.WithRedisLimitCounter(&httprateredis.Config{Host: addr.Addr().String(), Port: addr.Port()}))
	},
	absent: []string{"burst"},
	says: map[string]quote{
		"": {"Redis backend for [github.com/go-chi/httprate](https://github.com/go-chi/httprate), implementing `httprate.LimitCounter` interface.", "README.md"},
	},
}

// httprateBy limits addresses as the example of its README does.
func httprateBy(q quota, by keyed, options ...httprate.Option) http.Handler {
	if len(by) == 0 {
		address := func(r *http.Request) (string, error) {
			return httprate.CanonicalizeIP(middleware.GetClientIP(r.Context())), nil
		}
		return middleware.ClientIPFromRemoteAddr(httprate.LimitBy(q.requests, q.window, address, options...)(served))
	}
	var parts []httprate.KeyFunc
	for _, name := range by {
		parts = append(parts, func(r *http.Request) (string, error) { return r.Header.Get(name), nil })
	}
	limited := httprate.LimitBy(q.requests, q.window, httprate.JoinKeys(parts...), options...)(served)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		limited.ServeHTTP(w, r.WithContext(httprate.WithIncrement(r.Context(), int(costOf(r)))))
	})
}
