// Helpers of the tests: limiters, policies, requests, and the values of a registry.

package prommetrics_test

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/keyfunc"
	"github.com/penstock-go/penstock/middleware"
	"github.com/penstock-go/penstock/middleware/prommetrics"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var quiet = slog.New(slog.DiscardHandler)

var hourly = algorithms.TokenBucket(10, time.Hour)

func newMetrics(t testing.TB, reg prometheus.Registerer) *prommetrics.Metrics {
	t.Helper()
	m, err := prommetrics.New(reg, nil)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func newMemory(t testing.TB) *algorithms.Memory {
	t.Helper()
	return algorithms.NewMemory(nil)
}

func newMiddleware(t testing.TB, l algorithms.Limiter, o ratelimit.Observer, p ...ratelimit.Policy) *ratelimit.Middleware {
	t.Helper()
	return named(t, "", l, o, p...)
}

// named returns a Middleware with an observer and a name for its limiter.
func named(t testing.TB, name string, l algorithms.Limiter, o ratelimit.Observer, p ...ratelimit.Policy) *ratelimit.Middleware {
	t.Helper()
	m, err := ratelimit.New(l, &ratelimit.Options{Observers: []ratelimit.Observer{o}, LimiterName: name, Logger: quiet}, p...)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// tenant is a key that looks up every value.
var tenant = keyfunc.APIKey("X-API-Key", func(_ context.Context, key string) (keyfunc.Identity, error) {
	id, tier, _ := strings.Cut(key, ".")
	if id == "guess" {
		return keyfunc.Identity{}, keyfunc.ErrUnknown
	}
	return keyfunc.Identity{ID: id, Tier: tier}, nil
})

// withKey returns a request with an API key, ID or ID.TIER.
func withKey(ip, key string) *http.Request {
	r := from(ip)
	r.Header.Set("X-API-Key", key)
	return r
}

func byIP(name string, l algorithms.Limit) ratelimit.Policy {
	return ratelimit.Policy{Name: name, Key: keyfunc.IP(nil), Limit: l}
}

func from(ip string) *http.Request {
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.RemoteAddr = net.JoinHostPort(ip, "1234")
	return r
}

type limiterFunc func(context.Context, []algorithms.Check) error

func (f limiterFunc) Allow(ctx context.Context, checks []algorithms.Check) error {
	return f(ctx, checks)
}

// A wrapper is a limiter around another one.
type wrapper struct{ algorithms.Limiter }

func (w wrapper) Unwrap() algorithms.Limiter { return w.Limiter }

// A countedLimiter decides in memory, and has the Stats of a test.
type countedLimiter struct {
	*algorithms.Memory
	stats algorithms.Stats
}

func (l *countedLimiter) Stats() algorithms.Stats { return l.stats }

// gather returns the values of all series, by name{label=value,...}, and the number of series. The value of a histogram
// is its count.
func gather(t testing.TB, g prometheus.Gatherer) (values map[string]float64, series int) {
	t.Helper()
	families, err := g.Gather()
	if err != nil {
		t.Fatal(err)
	}
	values = make(map[string]float64)
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			var labels []string
			for _, l := range metric.GetLabel() {
				labels = append(labels, l.GetName()+"="+l.GetValue())
			}
			value := metric.GetCounter().GetValue() + metric.GetGauge().GetValue() + float64(metric.GetHistogram().GetSampleCount())
			values[family.GetName()+"{"+strings.Join(labels, ",")+"}"] = value
			series++
		}
	}
	return values, series
}

// wants reports the series whose values differ.
func wants(t testing.TB, got, want map[string]float64) {
	t.Helper()
	for series, value := range want {
		if v, ok := got[series]; !ok || v != value {
			t.Errorf("%s: got %v (exists: %v), want %v", series, v, ok, value)
		}
	}
}
