// Whole HTTP requests: a client, a server and its middleware, over loopback.
// Only the connection from the middleware to Redis has a delay.

package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/go-redis/redis_rate/v10"
	"github.com/throttled/throttled/v2"
	"github.com/ulule/limiter/v3"
	"github.com/ulule/limiter/v3/drivers/middleware/stdlib"
	ululeredis "github.com/ulule/limiter/v3/drivers/store/redis"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/algorithms/shared"
	"github.com/penstock-go/penstock/headers"
	"github.com/penstock-go/penstock/keyfunc"
	"github.com/penstock-go/penstock/middleware"
)

const requestCallers = 64

// wholeRequests returns a measure per network.
func wholeRequests() (some []measure) {
	for _, n := range networks {
		some = append(some, measure{
			name:  "http-" + n.name,
			title: fmt.Sprintf("Whole HTTP requests, %s, Redis over %s", plural(requestCallers, "client"), n.title()),
			plan: plan{
				callers: requestCallers, keys: 10_000, quota: perMinute, network: n,
				warmUp: second / 5, lasts: second / 2, sampled: true, onServer: true,
			},
			figures: []figure{checksPerSecond, p50, p99, p999, ownCPU, serverCPU, allocations},
			contestants: []contestant{
				{us, loaded(requested(penstockHandler))},
				{"redis_rate, a handler by hand", loaded(requested(redisRateHandler))},
				{"ulule/limiter", loaded(requested(ululeHandler))},
				{"throttled", loaded(requested(throttledHandler))},
				{"no limiter", unlimited(requested(noLimiter))},
			},
		})
	}
	return some
}

// requested serves a handler, and sends it HTTP requests of a merchant.
func requested(handler func(s *stage, q quota) (http.Handler, error)) setup {
	return func(_ context.Context, s *stage, q quota) (func() take, error) {
		h, err := handler(s, q)
		if err != nil {
			return nil, err
		}
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		server := &http.Server{Handler: h, ReadHeaderTimeout: time.Minute}
		go server.Serve(listener)
		s.onClose(func() { _ = server.Close() })
		transport := &http.Transport{MaxIdleConnsPerHost: requestCallers}
		s.onClose(transport.CloseIdleConnections)
		return sameTake(request(&http.Client{Transport: transport}, "http://"+listener.Addr().String()+"/v1/charges")), nil
	}
}

func request(client *http.Client, url string) take {
	return func(ctx context.Context, key string) (bool, error) {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return false, err
		}
		r.Header[merchantHeader] = []string{key}
		resp, err := client.Do(r)
		if err != nil {
			return false, err
		}
		defer resp.Body.Close()
		if _, err := io.Copy(io.Discard, resp.Body); err != nil {
			return false, err
		}
		switch resp.StatusCode {
		case http.StatusOK:
			return true, nil
		case http.StatusTooManyRequests:
			return false, nil
		}
		return false, fmt.Errorf("status %d", resp.StatusCode)
	}
}

func noLimiter(*stage, quota) (http.Handler, error) { return served, nil }

func penstockHandler(s *stage, q quota) (http.Handler, error) {
	limiter, err := newShared(s, s.client(), shared.Options{})
	if err != nil {
		return nil, err
	}
	m, err := ratelimit.New(limiter, &ratelimit.Options{Headers: headers.XRateLimit}, ratelimit.Policy{
		Name: "merchant", Key: keyfunc.Header(merchantHeader), Limit: algorithms.TokenBucket(q.requests, q.window),
	})
	if err != nil {
		return nil, err
	}
	return m.Handler(served), nil
}

// redisRateHandler is a handler as users of redis_rate write it, because redis_rate
// has no middleware.
func redisRateHandler(s *stage, q quota) (http.Handler, error) {
	l := redis_rate.NewLimiter(s.client())
	limit := redis_rate.Limit{Rate: int(q.requests), Burst: int(q.requests), Period: q.window}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		res, err := l.Allow(r.Context(), r.Header.Get(merchantHeader), limit)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		h := w.Header()
		h.Set("X-RateLimit-Limit", strconv.Itoa(limit.Burst))
		h.Set("X-RateLimit-Remaining", strconv.Itoa(res.Remaining))
		h.Set("X-RateLimit-Reset", strconv.FormatInt(time.Now().Add(res.ResetAfter).Unix(), 10))
		if res.Allowed == 0 {
			h.Set("Retry-After", strconv.Itoa(int(res.RetryAfter/time.Second)+1))
			http.Error(w, "too many requests", http.StatusTooManyRequests)
			return
		}
		served(w, r)
	}), nil
}

func ululeHandler(s *stage, q quota) (http.Handler, error) {
	store, err := ululeredis.NewStore(s.client())
	if err != nil {
		return nil, err
	}
	l := limiter.New(store, limiter.Rate{Period: q.window, Limit: q.requests})
	key := stdlib.WithKeyGetter(func(r *http.Request) string { return r.Header.Get(merchantHeader) })
	return stdlib.NewMiddleware(l, key).Handler(served), nil
}

func throttledHandler(s *stage, q quota) (http.Handler, error) {
	l, err := throttledLimiter(s, q)
	if err != nil {
		return nil, err
	}
	h := throttled.HTTPRateLimiterCtx{RateLimiter: l, VaryBy: &throttled.VaryBy{Headers: []string{merchantHeader}}}
	return h.RateLimit(served), nil
}
