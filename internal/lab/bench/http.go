package main

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"

	"github.com/go-chi/httprate"
	"github.com/sethvargo/go-limiter/httplimit"
	"github.com/ulule/limiter/v3"
	"github.com/ulule/limiter/v3/drivers/middleware/stdlib"
	ululememory "github.com/ulule/limiter/v3/drivers/store/memory"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/algorithms/shared"
	"github.com/penstock-go/penstock/headers"
	"github.com/penstock-go/penstock/keyfunc"
	"github.com/penstock-go/penstock/middleware"
)

// address returns the i-th remote address, for limits by IP.
func address(i int) string {
	return fmt.Sprintf("10.%d.%d.%d:", i>>16&255, i>>8&255, i&255) + strconv.Itoa(1024+i%60_000)
}

// handled sends requests of an address, which is also the merchant's name, to a
// handler. Each goroutine has one request and one response, so that only the
// middleware is measured.
func handled(h http.Handler) func() take {
	return func() take {
		r := httptest.NewRequest(http.MethodPost, "/v1/charges", http.NoBody)
		r.Pattern = "POST /v1/charges" // as a ServeMux sets it
		merchant := []string{""}
		r.Header[merchantHeader] = merchant
		w := &response{header: make(http.Header)}
		return func(_ context.Context, key string) (bool, error) {
			clear(w.header)
			w.status = http.StatusOK
			r.RemoteAddr, merchant[0] = key, key
			h.ServeHTTP(w, r)
			switch w.status {
			case http.StatusOK:
				return true, nil
			case http.StatusTooManyRequests:
				return false, nil
			}
			return false, fmt.Errorf("status %d", w.status)
		}
	}
}

// A response is a ResponseWriter that only keeps the status and the header.
type response struct {
	header http.Header
	status int
}

func (w *response) Header() http.Header         { return w.header }
func (w *response) Write(p []byte) (int, error) { return len(p), nil }
func (w *response) WriteHeader(status int)      { w.status = status }

var served = http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})

const merchantHeader = "X-Merchant"

func penstockMemoryHTTP(o ratelimit.Options) setup {
	return func(_ context.Context, _ *stage, q quota) (func() take, error) {
		return penstockHTTP(o, algorithms.NewMemory(nil), ratelimit.Policy{
			Name: "clients", Key: keyfunc.IP(nil), Limit: algorithms.TokenBucket(q.requests, q.window),
		})
	}
}

// penstockPoliciesHTTP limits in memory by the first n policies.
func penstockPoliciesHTTP(n int) setup {
	return func(_ context.Context, _ *stage, q quota) (func() take, error) {
		return penstockHTTP(ratelimit.Options{Headers: headers.XRateLimit}, algorithms.NewMemory(nil), policies(n, q)...)
	}
}

// penstockRedisHTTP limits by the first n policies.
func penstockRedisHTTP(n int) setup {
	return func(_ context.Context, s *stage, q quota) (func() take, error) {
		limiter, err := newShared(s, s.client(), shared.Options{})
		if err != nil {
			return nil, err
		}
		return penstockHTTP(observed, limiter, policies(n, q)...)
	}
}

// penstockSharedHTTP counts in Redis by one policy, and remembers denials.
func penstockSharedHTTP(_ context.Context, s *stage, q quota) (func() take, error) {
	limiter, err := newShared(s, s.client(), shared.Options{})
	if err != nil {
		return nil, err
	}
	return penstockHTTP(observed, limiter, ratelimit.Policy{
		Name: "clients", Key: keyfunc.IP(nil), Limit: algorithms.TokenBucket(q.requests, q.window),
	})
}

// unheard is an observer that ignores its events.
type unheard struct{}

func (unheard) Observe(context.Context, ratelimit.Event) {}

// observed has the options of middleware with an observer and the draft's headers.
var observed = ratelimit.Options{Headers: headers.Draft, Observers: []ratelimit.Observer{unheard{}}}

func penstockHTTP(o ratelimit.Options, l algorithms.Limiter, policies ...ratelimit.Policy) (func() take, error) {
	m, err := ratelimit.New(l, &o, policies...)
	if err != nil {
		return nil, err
	}
	return handled(m.Handler(served)), nil
}

// httprateHTTP keys by the peer's address. Its README has chi resolve the
// address first, which costs more.
func httprateHTTP(_ context.Context, _ *stage, q quota) (func() take, error) {
	//lint:ignore SA1019 it is the cheapest key that does not trust headers
	limit := httprate.LimitBy(int(q.requests), q.window, httprate.KeyByIP)
	return handled(limit(served)), nil
}

func httplimitHTTP(_ context.Context, s *stage, q quota) (func() take, error) {
	store, err := goLimiterStore(s, q)
	if err != nil {
		return nil, err
	}
	m, err := httplimit.NewMiddleware(store, httplimit.IPKeyFunc())
	if err != nil {
		return nil, err
	}
	return handled(m.Handle(served)), nil
}

func ululeHTTP(_ context.Context, _ *stage, q quota) (func() take, error) {
	l := limiter.New(ululememory.NewStore(), limiter.Rate{Period: q.window, Limit: q.requests})
	return handled(stdlib.NewMiddleware(l).Handler(served)), nil
}
