// Tests of the metrics of a shared limiter, with Redis and without.

package prommetrics_test

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/algorithms/shared"
	"github.com/penstock-go/penstock/internal/redistest"
	"github.com/penstock-go/penstock/middleware"
)

// TestShared: metrics count the work of a shared limiter, and the package's documentation lists every metric.
func TestShared(t *testing.T) {
	reg := prometheus.NewRegistry()
	m := newMetrics(t, reg)
	limiter, err := shared.New(redistest.Start(t).Client(), &shared.Options{Deadline: 10 * time.Second, Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	defer limiter.Close()
	limited := newMiddleware(t, limiter, m, byIP("p", algorithms.TokenBucket(1, time.Hour)))
	var asked, hits float64 // Redis admits one request. Redis, or for a second this process, denies the others.
	for ; hits < 3; hits = float64(limiter.Stats().Views.Denied) {
		asked++
		if _, err := limited.Check(from("192.0.2.1")); err != nil {
			t.Fatal(err)
		}
	}
	values, _ := gather(t, reg)
	wants(t, values, map[string]float64{
		"ratelimit_requests_total{outcome=allowed,policy=p,tier=}": 1,
		"ratelimit_requests_total{outcome=denied,policy=p,tier=}":  asked - 1,
		"ratelimit_decision_duration_seconds{source=shared}":       asked,
		"ratelimit_redis_checks_total{limiter=redis}":              asked - hits,
		"ratelimit_redis_missing_states_total{limiter=redis}":      1,
		"ratelimit_redis_batch_checks{limiter=redis}":              asked - hits,
		"ratelimit_redis_script_loads_total{limiter=redis}":        1,
		"ratelimit_views_denied_total{limiter=redis}":              hits,
		"ratelimit_views_keys{limiter=redis}":                      1,
		"ratelimit_breaker_open{limiter=redis}":                    0,
		"ratelimit_breaker_trips_total{limiter=redis}":             0,
		"ratelimit_instances{limiter=redis}":                       1,
		"ratelimit_memory_keys{limiter=redis}":                     0,
	})
	documentation, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	for series := range values {
		name, _, _ := strings.Cut(strings.TrimPrefix(series, "ratelimit_"), "{")
		if !strings.Contains(string(documentation), "\n//\t"+name+" ") {
			t.Errorf("%s is not in doc.go", name)
		}
	}
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	problems, err := promlint.NewWithMetricFamilies(families).Lint()
	if err != nil || len(problems) > 0 {
		t.Errorf("got %v and error %v, want no offence against conventions", problems, err)
	}
}

// TestOutage: decisions without Redis have their own outcomes and counts.
func TestOutage(t *testing.T) {
	reg := prometheus.NewRegistry()
	m := newMetrics(t, reg)
	down := redistest.Script(nil, redistest.Fail(errors.New("down")))
	limiter, err := shared.New(down, &shared.Options{Deadline: 10 * time.Second, Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	defer limiter.Close()
	open, closed := byIP("open", hourly), byIP("closed", hourly)
	open.Fail, closed.Fail = algorithms.FailOpen, algorithms.FailClosed
	for _, policy := range []ratelimit.Policy{byIP("local", algorithms.TokenBucket(1, time.Hour)), open, closed} {
		limited := named(t, "f", limiter, m, policy)
		for range 3 {
			_, _ = limited.Check(from("192.0.2.1")) // an error under FailClosed, which the test counts below
		}
	}
	values, _ := gather(t, reg)
	wants(t, values, map[string]float64{
		"ratelimit_requests_total{outcome=degraded_allowed,policy=local,tier=}": 1,
		"ratelimit_requests_total{outcome=degraded_denied,policy=local,tier=}":  2,
		"ratelimit_requests_total{outcome=failed_open,policy=open,tier=}":       3,
		"ratelimit_requests_total{outcome=failed_closed,policy=closed,tier=}":   3,
		"ratelimit_fallback_local_checks_total{limiter=f}":                      3,
		"ratelimit_fallback_passed_checks_total{limiter=f}":                     3,
		"ratelimit_fallback_refused_calls_total{limiter=f}":                     3,
		"ratelimit_decision_duration_seconds{source=local}":                     3,
		"ratelimit_decision_duration_seconds{source=undecided}":                 6,
	})
}
