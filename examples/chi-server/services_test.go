// Small services in the situations of the alerts, beside the example.

package main

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/algorithms/shared"
	"github.com/penstock-go/penstock/internal/redistest"
	"github.com/penstock-go/penstock/keyfunc"
	"github.com/penstock-go/penstock/middleware"
	"github.com/penstock-go/penstock/middleware/prommetrics"
)

// newService returns the URL of the metrics of a service, and the options of its Middlewares.
func newService(t *testing.T) (url string, o *ratelimit.Options) {
	t.Helper()
	registry := prometheus.NewRegistry()
	metrics := ratelimit.Must(prommetrics.New(registry, nil))
	server := httptest.NewServer(promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	t.Cleanup(server.Close)
	return server.URL, &ratelimit.Options{Observers: []ratelimit.Observer{metrics}, Logger: slog.New(slog.DiscardHandler)}
}

// trial is a server with two policies that try a candidate. The candidate of "strict" would decide many requests
// otherwise, and the candidate of "alike" few.
func trial(t *testing.T) scene {
	t.Helper()
	url, observed := newService(t)
	memory := algorithms.NewMemory(nil)

	limit := algorithms.TokenBucket(1_000_000, time.Second)
	candidate := limit.WithBurst(5) // which denies all costs above 5, and nothing else
	serve := func(policy string) func(path string) {
		m := ratelimit.Must(ratelimit.New(memory, observed, ratelimit.Policy{
			Name: policy, Key: keyfunc.IP(nil), Limit: limit, Candidate: &candidate,
			Cost: func(r *http.Request) int64 { return int64(len(r.URL.Path)) },
		}))
		h := m.Handler(answer(nil))
		return func(path string) { h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, path, nil)) }
	}
	strict, alike := serve("strict"), serve("alike")
	return scene{"trial", url, func(*testing.T) {
		alike("/costly") // first, so that no scrape finds it among few requests
		for i := range 100 {
			strict([]string{"/", "/costly"}[i%2])
			alike("/")
		}
	}}
}

// A failing limiter does not decide one call of ten.
type failingLimiter struct {
	algorithms.Limiter
	calls int
}

func (l *failingLimiter) Allow(ctx context.Context, checks []algorithms.Check) error {
	if l.calls++; l.calls%10 == 0 {
		return algorithms.ErrUnavailable
	}
	return l.Limiter.Allow(ctx, checks)
}

// failing is a service whose policy "mail" passes a tenth of its requests without a decision. Two of its Middlewares
// have different limits for the policy "uneven".
func failing(t *testing.T) scene {
	t.Helper()
	url, observed := newService(t)
	memory, generous := algorithms.NewMemory(nil), algorithms.TokenBucket(1_000_000, time.Second)
	for _, n := range []int64{1, 2} {
		ratelimit.Must(ratelimit.New(memory, observed, ratelimit.Policy{Name: "uneven", Limit: algorithms.TokenBucket(n, time.Second)}))
	}
	m := ratelimit.Must(ratelimit.New(&failingLimiter{Limiter: memory}, observed, ratelimit.Policy{Name: "mail", Fail: algorithms.FailOpen, Limit: generous}))
	return scene{"failing", url, func(t *testing.T) {
		for range 20 {
			_, _ = m.Check(httptest.NewRequest(http.MethodGet, "/", nil))
		}
	}}
}

// evicting is a service whose Redis may evict limits.
func evicting(t *testing.T) scene {
	t.Helper()
	redis := redistest.Start(t, "--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru").Client()
	url, observed := newService(t)
	limiter := ratelimit.Must(shared.New(redis, &shared.Options{Deadline: time.Minute}))
	t.Cleanup(func() { _ = limiter.Close() })
	observed.LimiterName = "evicting"
	m := ratelimit.Must(ratelimit.New(limiter, observed, ratelimit.Policy{Name: "kept", Limit: algorithms.TokenBucket(1_000_000, time.Hour)}))
	return scene{"evicting", url, func(t *testing.T) {
		limiter.Findings(t.Context()) // which beats do only after a minute
		if _, err := m.Check(httptest.NewRequest(http.MethodGet, "/", nil)); err != nil {
			t.Fatal(err)
		}
	}}
}
