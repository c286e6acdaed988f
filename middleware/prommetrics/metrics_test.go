// Tests of metrics: of requests, and of the Stats of limiters.

package prommetrics_test

import (
	"context"
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

// TestFigures: every count of a shared limiter's Stats has a metric of its own, and errors have one per reason.
func TestFigures(t *testing.T) {
	reg := prometheus.NewRegistry()
	m := newMetrics(t, reg)
	l := &countedLimiter{Memory: newMemory(t)}
	l.stats.Shared, l.stats.Fallback.Open = true, true
	l.stats.Redis.Errors = map[string]uint64{"timeout": 1, "configuration": 0}
	l.stats.Redis.Checks, l.stats.Redis.Scripts, l.stats.Redis.ScriptLoads = 2, 3, 4
	l.stats.Redis.Missing, l.stats.Redis.ReturnsFailed = 5, 6
	l.stats.Redis.Batches[0], l.stats.Redis.Batches[8], l.stats.Redis.Batched = 7, 1, 300
	l.stats.Fallback.Trips, l.stats.Fallback.Instances = 9, 10
	l.stats.Fallback.Local, l.stats.Fallback.Passed, l.stats.Fallback.Refused = 11, 12, 13
	l.stats.Fallback.Owed, l.stats.Fallback.HandedBack, l.stats.Fallback.Lost = 14, 15, 16
	l.stats.DenyCache.Hits, l.stats.DenyCache.Keys = 17, 18
	l.stats.Lease.Keys, l.stats.Lease.Units, l.stats.Lease.Blocks, l.stats.Lease.Leased = 19, 20, 21, 22
	l.stats.Lease.Spent, l.stats.Lease.Returned, l.stats.Lease.Lost = 23, 24, 25
	l.stats.Memory.Keys, l.stats.Memory.Expired, l.stats.Memory.Evicted, l.stats.Memory.Refused = 26, 27, 28, 29
	if err := m.Watch("l", l); err != nil {
		t.Fatal(err)
	}
	values, _ := gather(t, reg)
	for series, want := range map[string]float64{
		"ratelimit_redis_errors_total{limiter=l,reason=timeout}":       1,
		"ratelimit_redis_errors_total{limiter=l,reason=configuration}": 0,
		"ratelimit_redis_checks_total{limiter=l}":                      2,
		"ratelimit_redis_scripts_total{limiter=l}":                     3,
		"ratelimit_redis_script_loads_total{limiter=l}":                4,
		"ratelimit_redis_missing_states_total{limiter=l}":              5,
		"ratelimit_redis_failed_returns_total{limiter=l}":              6,
		"ratelimit_redis_batch_checks{limiter=l}":                      8,
		"ratelimit_breaker_open{limiter=l}":                            1,
		"ratelimit_breaker_trips_total{limiter=l}":                     9,
		"ratelimit_instances{limiter=l}":                               10,
		"ratelimit_fallback_local_checks_total{limiter=l}":             11,
		"ratelimit_fallback_passed_checks_total{limiter=l}":            12,
		"ratelimit_fallback_refused_calls_total{limiter=l}":            13,
		"ratelimit_fallback_owed_keys{limiter=l}":                      14,
		"ratelimit_fallback_handed_back_units_total{limiter=l}":        15,
		"ratelimit_fallback_lost_units_total{limiter=l}":               16,
		"ratelimit_deny_cache_hits_total{limiter=l}":                   17,
		"ratelimit_deny_cache_keys{limiter=l}":                         18,
		"ratelimit_lease_keys{limiter=l}":                              19,
		"ratelimit_lease_units{limiter=l}":                             20,
		"ratelimit_lease_blocks_total{limiter=l}":                      21,
		"ratelimit_lease_taken_units_total{limiter=l}":                 22,
		"ratelimit_lease_spent_units_total{limiter=l}":                 23,
		"ratelimit_lease_returned_units_total{limiter=l}":              24,
		"ratelimit_lease_lost_units_total{limiter=l}":                  25,
		"ratelimit_memory_keys{limiter=l}":                             26,
		"ratelimit_memory_expired_keys_total{limiter=l}":               27,
		"ratelimit_memory_evicted_keys_total{limiter=l}":               28,
		"ratelimit_memory_refused_keys_total{limiter=l}":               29,
	} {
		if got, ok := values[series]; !ok || got != want {
			t.Errorf("%s: got %v (there: %v), want %v", series, got, ok, want)
		}
	}
}

// TestFiguresOfMemory: a limiter that is not shared has no metrics of Redis.
func TestFiguresOfMemory(t *testing.T) {
	reg := prometheus.NewRegistry()
	m := newMetrics(t, reg)
	if err := m.Watch("m", newMemory(t)); err != nil {
		t.Fatal(err)
	}
	values, _ := gather(t, reg)
	for series := range values {
		if strings.Contains(series, "limiter=m") && !strings.HasPrefix(series, "ratelimit_memory_") {
			t.Errorf("got %s, want metrics of memory only", series)
		}
	}
	if _, ok := values["ratelimit_memory_keys{limiter=m}"]; !ok {
		t.Errorf("got %v, want the keys in memory", values)
	}
}

// TestWatch: a limiter without Stats cannot be watched.
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
