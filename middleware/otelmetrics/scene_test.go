// One scene through prommetrics and through otelmetrics.

package otelmetrics_test

import (
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	exporter "go.opentelemetry.io/otel/exporters/prometheus"
	sdk "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/algorithms/shared"
	"github.com/penstock-go/penstock/internal/redistest"
	"github.com/penstock-go/penstock/middleware"
	"github.com/penstock-go/penstock/middleware/otelmetrics"
	"github.com/penstock-go/penstock/middleware/prommetrics"
)

// scene serves clients, remembers denials, loses Redis, opens its circuit, and serves again, until the
// limiter is closed. So its figures do not change any more.
func scene(t *testing.T, observers ...ratelimit.Observer) {
	t.Helper()
	server := redistest.Start(t)
	limiter, err := shared.New(server.Client(), &shared.Options{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	candidate := algorithms.Nobody()
	opts := &ratelimit.Options{Observers: observers, Logger: slog.New(slog.DiscardHandler)}
	limited := ratelimit.Must(ratelimit.New(limiter, opts, ratelimit.Policy{Name: "orders", Limit: algorithms.TokenBucket(2, time.Hour)}))
	tried := ratelimit.Must(ratelimit.New(limiter, opts, // a second Middleware, because calls with a trial ask Redis always
		ratelimit.Policy{Name: "tried", Limit: algorithms.TokenBucket(2, time.Hour), Candidate: &candidate},
		ratelimit.Policy{Name: "shadow", Limit: algorithms.FixedWindow(1, time.Hour), Shadow: true}))
	ask := func(client int) {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.RemoteAddr = fmt.Sprintf("192.0.2.%d:1234", client)
		limited.Handler(tried.Handler(http.NotFoundHandler())).ServeHTTP(httptest.NewRecorder(), r)
	}
	for limiter.Stats().Views.Denied < 3 {
		for client := range 5 {
			ask(client)
		}
	}
	server.Kill()
	for client := 10; limiter.Stats().Fallback.Open == 0; client = 10 + (client+1)%50 {
		ask(client)
	}
	for client := range 20 {
		ask(client)
	}
	if err := limiter.Close(); err != nil {
		t.Fatal(err)
	}
}

// values returns the value of each series of a registry. A histogram has its count and its buckets.
func values(t *testing.T, g prometheus.Gatherer) map[string]float64 {
	t.Helper()
	families, err := g.Gather()
	if err != nil {
		t.Fatal(err)
	}
	all := make(map[string]float64)
	for _, family := range families {
		for _, m := range family.GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() {
				labels = append(labels, strings.TrimPrefix(l.GetName(), "ratelimit_")+"="+l.GetValue())
			}
			slices.Sort(labels)
			series := family.GetName() + "{" + strings.Join(labels, ",") + "}"
			all[series] = m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
			for _, b := range m.GetHistogram().GetBucket() {
				if !math.IsInf(b.GetUpperBound(), 1) {
					all[fmt.Sprintf("%s le %v", series, b.GetUpperBound())] = float64(b.GetCumulativeCount())
				}
			}
		}
	}
	return all
}

// read returns the values of all series of a reader under the names of prommetrics.
func read(t *testing.T, reader *sdk.ManualReader) map[string]float64 {
	t.Helper()
	var collected metricdata.ResourceMetrics
	if err := reader.Collect(t.Context(), &collected); err != nil {
		t.Fatal(err)
	}
	all := make(map[string]float64)
	for _, scope := range collected.ScopeMetrics {
		for _, m := range scope.Metrics {
			name := strings.Replace(m.Name, ".", "_", 1)
			if m.Unit == "s" {
				name += "_seconds"
			}
			series := func(suffix string, p metricdata.DataPoint[float64]) {
				all[name+suffix+"{"+p.Attributes.Encoded(encoder{})+"}"] = p.Value
			}
			switch data := m.Data.(type) {
			case metricdata.Gauge[float64]:
				for _, p := range data.DataPoints {
					series("", p)
				}
			case metricdata.Sum[float64]:
				for _, p := range data.DataPoints {
					series("_total", p)
				}
			case metricdata.Histogram[float64]:
				for _, p := range data.DataPoints {
					all[name+"{"+p.Attributes.Encoded(encoder{})+"}"] = float64(p.Count)
				}
			default:
				t.Errorf("%s has data of the type %T", m.Name, data)
			}
		}
	}
	return all
}

// TestSameNumbers: the questions that operators ask most have the same numbers in both.
func TestSameNumbers(t *testing.T) {
	reader, registry := sdk.NewManualReader(), prometheus.NewRegistry()
	scene(t, newMetrics(t, sdk.NewMeterProvider(sdk.WithReader(reader))), ratelimit.Must(prommetrics.New(registry, nil)))
	got, want := read(t, reader), values(t, registry)
	for question, family := range map[string]string{
		"rate by outcome":    "ratelimit_requests_total",
		"latency":            "ratelimit_decision_duration_seconds",
		"open circuits":      "ratelimit_breaker_open",
		"remembered denials": "ratelimit_views_denied_total",
	} {
		sum := 0.0
		for series, value := range want {
			if !strings.HasPrefix(series, family+"{") || strings.Contains(series, " le ") {
				continue
			}
			sum += value
			if v, found := got[series]; (!found && value != 0) || v != value {
				t.Errorf("%s: %s: got %v (exists: %v), and prommetrics has %v", question, series, v, found, value)
			}
		}
		if sum == 0 {
			t.Errorf("%s: the scene shows nothing", question)
		}
	}
}

// TestNamesAndValues: through OpenTelemetry's exporter for Prometheus, all series have the names and the values of
// prommetrics, so the same alerts and the same dashboard work.
func TestNamesAndValues(t *testing.T) {
	exported, registry := prometheus.NewRegistry(), prometheus.NewRegistry()
	reader, err := exporter.New(exporter.WithRegisterer(exported), exporter.WithoutScopeInfo(), exporter.WithoutTargetInfo())
	if err != nil {
		t.Fatal(err)
	}
	scene(t, newMetrics(t, sdk.NewMeterProvider(sdk.WithReader(reader))), ratelimit.Must(prommetrics.New(registry, nil)))
	got, want := values(t, exported), values(t, registry)
	checks := want["ratelimit_redis_batch_checks{limiter=redis}"]
	if got["ratelimit_redis_batches_total{limiter=redis}"] != checks || got["ratelimit_redis_batched_checks_total{limiter=redis}"] < checks || checks == 0 {
		t.Errorf("got %v batches, want %v", got["ratelimit_redis_batches_total{limiter=redis}"], checks)
	}
	if trips := want["ratelimit_redis_round_trip_seconds{limiter=redis}"]; got["ratelimit_redis_round_trips_total{limiter=redis}"] != trips || trips == 0 {
		t.Errorf("got %v round trips, want %v", got["ratelimit_redis_round_trips_total{limiter=redis}"], trips)
	}
	compared := 0
	for series, value := range want {
		v, found := got[series]
		switch {
		case strings.HasPrefix(series, "ratelimit_redis_batch_checks"), strings.HasPrefix(series, "ratelimit_redis_round_trip_seconds{"): // two counters, see above
		case strings.HasPrefix(series, "ratelimit_start_time_seconds"): // of two packages
			if !found || v == 0 {
				t.Errorf("got no %s", series)
			}
		case !found && value == 0 && strings.HasPrefix(series, "ratelimit_decision_duration_seconds"),
			!found && value == 0 && strings.HasPrefix(series, "ratelimit_settlement_lag_seconds"): // OpenTelemetry has no empty histogram
		case !found || v != value:
			t.Errorf("%s: got %v (exists: %v), and prommetrics has %v", series, v, found, value)
		default:
			compared++
		}
	}
	if compared < 80 {
		t.Errorf("compared %d series, want more", compared)
	}
}

func newMetrics(t *testing.T, provider *sdk.MeterProvider) *otelmetrics.Metrics {
	t.Helper()
	m, err := otelmetrics.New(provider, nil)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// An aheadLimiter has admitted calls ahead.
type aheadLimiter struct{ *algorithms.Memory }

func (l aheadLimiter) Stats() algorithms.Stats {
	s := l.Memory.Stats()
	s.Shared = true
	a := &s.Ahead
	a.Admitted, a.Near, a.Allowance, a.Census, a.Busy, a.Unknown, a.Trouble, a.Overdrawn, a.Unacknowledged = 1, 2, 3, 4, 5, 6, 7, 8, 9
	return s
}

// TestAheadHasTheSameNumbers: what was admitted ahead, and why other calls asked, is the same in both.
func TestAheadHasTheSameNumbers(t *testing.T) {
	reader, registry := sdk.NewManualReader(), prometheus.NewRegistry()
	observers := []ratelimit.Observer{newMetrics(t, sdk.NewMeterProvider(sdk.WithReader(reader))), ratelimit.Must(prommetrics.New(registry, nil))}
	ratelimit.Must(ratelimit.New(aheadLimiter{algorithms.NewMemory(nil)}, &ratelimit.Options{Observers: observers, Logger: slog.New(slog.DiscardHandler)},
		ratelimit.Policy{Name: "orders", Limit: algorithms.TokenBucket(2, time.Hour)}))
	got, sum := read(t, reader), 0.0
	for series, value := range values(t, registry) {
		if !strings.HasPrefix(series, "ratelimit_ahead_") {
			continue
		}
		if sum += value; got[series] != value || value == 0 {
			t.Errorf("%s: got %v, and prommetrics has %v", series, got[series], value)
		}
	}
	if sum != 45 {
		t.Errorf("prommetrics has %v in all, want 45", sum)
	}
}
