package prommetrics_test

import (
	"context"
	"errors"
	"math"
	"net/http"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/keyfunc"
	ratelimit "github.com/penstock-go/penstock/middleware"
	"github.com/penstock-go/penstock/middleware/prommetrics"
)

func TestNewNamesEveryMistake(t *testing.T) {
	for _, buckets := range [][]float64{{1, 1}, {2, 1}, {1, math.NaN()}} {
		_, err := prommetrics.New(nil, &prommetrics.Options{Buckets: buckets})
		if err == nil || !strings.Contains(err.Error(), "registerer is nil") || !strings.Contains(err.Error(), "Buckets are") {
			t.Errorf("%v: got %v, want both mistakes", buckets, err)
		}
	}
}

// TestNewAgain: one registry has one set of metrics, however often it is asked for.
func TestNewAgain(t *testing.T) {
	reg := prometheus.NewRegistry()
	first, again := newMetrics(t, reg), newMetrics(t, reg)
	if first != again {
		t.Error("got other metrics, want the same")
	}
	if newMetrics(t, prometheus.NewRegistry()) == first {
		t.Error("got the metrics of another registry")
	}
	both := prometheus.NewRegistry()
	a := prometheus.WrapRegistererWith(prometheus.Labels{"program": "a"}, both)
	b := prometheus.WrapRegistererWith(prometheus.Labels{"program": "b"}, both)
	ofA, ofB := newMetrics(t, a), newMetrics(t, b)
	if again := newMetrics(t, a); ofA == ofB || ofA != again {
		t.Error("got other metrics, want one set for each wrapper")
	}
	taken := prometheus.NewRegistry()
	taken.MustRegister(prometheus.NewGauge(prometheus.GaugeOpts{Name: "ratelimit_instances", Help: "Somebody else's."}))
	if _, err := prommetrics.New(taken, nil); err == nil || !strings.Contains(err.Error(), "ratelimit_instances") {
		t.Errorf("got %v, want that the name is taken", err)
	}
	if values, _ := gather(t, taken); len(values) != 1 {
		t.Errorf("got %v, want nothing but what was there", values)
	}
}

// TestRequests: what two middlewares do is counted by policy, tier and outcome.
func TestRequests(t *testing.T) {
	reg := prometheus.NewRegistry()
	m := newMetrics(t, reg)
	memory := newMemory(t)
	tiered := byIP("p", algorithms.TokenBucket(3, 1e9*3600))
	tiered.Tier = tierOf
	tiered.Tiers = map[string]algorithms.Limit{"pro": algorithms.TokenBucket(100, 1e9*3600)}
	candidate := algorithms.Nobody()
	tried := byIP("q", hourly)
	tried.Candidate = &candidate
	shadow := byIP("r", algorithms.Nobody())
	shadow.Shadow = true
	one, two := newMiddleware(t, memory, m, tiered), newMiddleware(t, memory, m, tried, shadow)
	keyed := newMiddleware(t, memory, m, ratelimit.Policy{
		Name: "k", Key: keyfunc.APIKey("X-API-Key", []byte("a secret of the tests"), func(string) bool { return false }), Limit: hourly,
	})
	for range 5 {
		_, _ = one.Check(from("192.0.2.1"))
	}
	pro := from("192.0.2.2")
	pro.Header.Set("Tier", "pro")
	odd := from("192.0.2.3")
	odd.Header.Set("Tier", "odd")
	guess := from("192.0.2.4")
	guess.Header.Set("X-API-Key", "guess-guess-guess")
	_, _ = one.Check(pro)
	_, _ = one.Check(odd)
	_, _ = two.Check(from("192.0.2.1"))
	_, _ = keyed.Check(guess)
	_, _ = keyed.Check(from("192.0.2.4")) // no key
	m.Observe(context.Background(), ratelimit.Event{
		Kind: ratelimit.Abandoned, Verdict: ratelimit.Verdict{Policies: []ratelimit.PolicyVerdict{{Name: "q"}, {Name: "r"}}},
	})
	m.WatchOffenders(one)
	m.WatchOffenders(two)
	m.WatchOffenders(one)

	values, _ := gather(t, reg)
	for series, want := range map[string]float64{
		"ratelimit_requests_total{outcome=allowed,policy=p,tier=}":                      4,
		"ratelimit_requests_total{outcome=allowed,policy=p,tier=pro}":                   1,
		"ratelimit_requests_total{outcome=denied,policy=p,tier=}":                       2,
		"ratelimit_requests_total{outcome=denied,policy=p,tier=pro}":                    0,
		"ratelimit_requests_total{outcome=shadow_denied,policy=r,tier=}":                1,
		"ratelimit_requests_total{outcome=key_error,policy=k,tier=}":                    2,
		"ratelimit_requests_total{outcome=allowed,policy=k,tier=}":                      0,
		"ratelimit_abandoned_requests_total{policy=r}":                                  1,
		"ratelimit_near_limit_requests_total{policy=p}":                                 1,
		"ratelimit_unknown_tier_requests_total{policy=p}":                               1,
		"ratelimit_candidate_divergences_total{candidate=denied,live=allowed,policy=q}": 1,
		"ratelimit_decision_duration_seconds{source=local}":                             9,
		"ratelimit_distinct_keys{policy=p}":                                             3,
		"ratelimit_top_offender_denial_ratio{policy=p}":                                 1,
		"ratelimit_top_offender_denial_ratio{policy=r}":                                 1,
		"ratelimit_top_offender_denial_ratio{policy=q}":                                 0,
	} {
		if got, ok := values[series]; !ok || got != want {
			t.Errorf("%s: got %v (there: %v), want %v", series, got, ok, want)
		}
	}
}

// TestLimiterEvents: errors are counted by class, and every event by its name.
func TestLimiterEvents(t *testing.T) {
	reg := prometheus.NewRegistry()
	m := newMetrics(t, reg)
	m.ObserveLimiter(algorithms.Event{Kind: algorithms.EventError, Class: algorithms.ErrorTimeout, Err: errors.New("i/o timeout")})
	m.ObserveLimiter(algorithms.Event{Kind: algorithms.EventOpened, Class: algorithms.ErrorTimeout})
	m.ObserveLimiter(algorithms.Event{Kind: 200})
	m.ObserveLimiter(algorithms.Event{Kind: algorithms.EventError, Class: 200})
	values, _ := gather(t, reg)
	for series, want := range map[string]float64{
		"ratelimit_backend_errors_total{class=timeout}":       1,
		"ratelimit_backend_errors_total{class=configuration}": 0,
		"ratelimit_backend_events_total{event=error}":         2,
		"ratelimit_backend_events_total{event=opened}":        1,
		"ratelimit_backend_events_total{event=closed}":        0,
	} {
		if got, ok := values[series]; !ok || got != want {
			t.Errorf("%s: got %v (there: %v), want %v", series, got, ok, want)
		}
	}
}

// TestWatch: of what is not one of ours there are no Stats.
func TestWatch(t *testing.T) {
	m := newMetrics(t, prometheus.NewRegistry())
	other := limiterFunc(func(context.Context, []algorithms.Check) error { return nil })
	for _, limiter := range []algorithms.Limiter{nil, other} {
		if err := m.Watch("other", limiter); err == nil || !strings.Contains(err.Error(), `"other"`) {
			t.Errorf("%T: got %v, want an error", limiter, err)
		}
	}
}

// TestNamesThatAreNoText: labels are UTF-8, and Prometheus panics of others: at requests, and at scrapes.
func TestNamesThatAreNoText(t *testing.T) {
	reg := prometheus.NewRegistry()
	m, p := newMetrics(t, reg), byIP("p", hourly)
	p.Tier = func(*http.Request) string { return "gold\xff" }
	p.Tiers = map[string]algorithms.Limit{"gold\xff": hourly}
	if _, err := newMiddleware(t, newMemory(t), m, p).Check(from("192.0.2.1")); err != nil {
		t.Error(err)
	}
	if err := m.Watch("\xff", newMemory(t)); err == nil || !strings.Contains(err.Error(), "UTF-8") {
		t.Errorf("got %v, want an error", err)
	}
	values, _ := gather(t, reg)
	if got := values["ratelimit_requests_total{outcome=allowed,policy=p,tier=gold\uFFFD}"]; got != 1 {
		t.Errorf("got %v in %v, want 1", got, values)
	}
}
