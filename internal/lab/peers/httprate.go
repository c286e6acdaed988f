package main

import (
	"net"
	"net/http"
	"strconv"

	"github.com/go-chi/chi/v5/middleware"
	"github.com/go-chi/httprate"
	httprateredis "github.com/go-chi/httprate-redis"
)

var httprateMemory = library{
	name: "go-chi/httprate", slug: "httprate", module: "github.com/go-chi/httprate", store: "memory",
	open: func(_ *trial, q quota) (*limiter, error) { return httprateBy(q), nil },
	byAddress: func(_ *trial, q quota, next http.Handler) (http.Handler, error) {
		return httprateByAddress(q, next), nil
	},
	absent: []string{"several", "burst", "instances", "outage", "outage-limit", "refund"},
	says: map[string]quote{
		"several":      {"Use JoinKeys to rate-limit by more than one dimension at once:", "httprate.go"},
		"wait":         {"setHeader(w, l.headers.RetryAfter, strconv.Itoa(int(l.windowLength.Seconds()))) // RFC 6585", "limiter.go"},
		"burst":        {"Increment string // Default: X-RateLimit-Increment", "httprate.go"},
		"instances":    {"Local in-memory backend (default)", "README.md"},
		"outage":       {"The default local in-memory counter is guaranteed not return any errors", "README.md"},
		"outage-limit": {"The default local in-memory counter is guaranteed not return any errors", "README.md"},
		"keys":         {`JoinKeys joins the results of several KeyFuncs into a single key with ":" separators`, "httprate.go"},
		"refund":       {"it increments the request count and returns false.", "limiter.go"},
	},
}

var httprateRedis = library{
	name: "go-chi/httprate-redis", slug: "httprate-redis", module: "github.com/go-chi/httprate-redis", store: "Redis",
	open: func(t *trial, q quota) (*limiter, error) {
		counter, err := httprateCounter(t)
		if err != nil {
			return nil, err
		}
		return httprateBy(q, counter), nil
	},
	byAddress: func(t *trial, q quota, next http.Handler) (http.Handler, error) {
		counter, err := httprateCounter(t)
		if err != nil {
			return nil, err
		}
		return httprateByAddress(q, next, counter), nil
	},
	absent: []string{"several", "burst", "outage-limit", "refund"},
	shown:  []string{"outage-limit"},
	says: map[string]quote{
		"":             {"Redis backend for [github.com/go-chi/httprate](https://github.com/go-chi/httprate), implementing `httprate.LimitCounter` interface.", "README.md"},
		"outage":       {"If Redis does not respond within this duration, the system will use the local counter unless it is explicitly disabled.", "config.go"},
		"outage-limit": {"the system will use the local counter unless it is explicitly disabled.", "config.go"},
	},
}

func httprateCounter(t *trial) (httprate.Option, error) {
	host, text, err := net.SplitHostPort(t.redis())
	if err != nil {
		return nil, err
	}
	port, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		return nil, err
	}
	return httprateredis.WithRedisLimitCounter(&httprateredis.Config{Host: host, Port: uint16(port)}), nil
}

func httprateBy(q quota, options ...httprate.Option) *limiter {
	header := func(name string) httprate.KeyFunc {
		return func(r *http.Request) (string, error) { return r.Header.Get(name), nil }
	}
	h := httprate.LimitBy(q.requests, q.window, header(clientHeader), options...)(served)
	pairs := httprate.LimitBy(q.requests, q.window, httprate.JoinKeys(header(clientHeader), header(secondHeader)), options...)(served)
	costs := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.ServeHTTP(w, r.WithContext(httprate.WithIncrement(r.Context(), int(costOf(r)))))
	})
	l := overHTTP(h)
	l.takeN = func(key string, n int) (answer, error) {
		return ask(costs, clientHeader, key, costHeader, strconv.Itoa(n))
	}
	l.pair = func(a, b string) (answer, error) { return ask(pairs, clientHeader, a, secondHeader, b) }
	return l
}

// httprateByAddress is the example of its README.
func httprateByAddress(q quota, next http.Handler, options ...httprate.Option) http.Handler {
	return middleware.ClientIPFromRemoteAddr(httprate.LimitBy(q.requests, q.window, func(r *http.Request) (string, error) {
		return httprate.CanonicalizeIP(middleware.GetClientIP(r.Context())), nil
	}, options...)(next))
}
