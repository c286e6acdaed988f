package main

import (
	"net/http/httptest"
	"testing"
	"testing/synctest"

	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
)

// TestTelemetry: of 61 requests the last is denied, in the metrics and in its span.
func TestTelemetry(t *testing.T) { synctest.Test(t, testTelemetry) }

func testTelemetry(t *testing.T) {
	reader, spans := sdkmetric.NewManualReader(), tracetest.NewSpanRecorder()
	h, err := server(sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)), sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans)))
	if err != nil {
		t.Fatal(err)
	}
	for range 61 {
		h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/v1/orders/7", nil))
	}
	var collected metricdata.ResourceMetrics
	if err := reader.Collect(t.Context(), &collected); err != nil {
		t.Fatal(err)
	}
	if got := requests(collected); got["allowed"] != 60 || got["denied"] != 1 {
		t.Errorf("got %v, want 60 allowed requests and one denied", got)
	}
	last := attribute.NewSet(spans.Ended()[60].Attributes()...)
	if outcome, _ := last.Value("ratelimit.outcome.orders"); outcome.AsString() != "denied" {
		t.Errorf("got the span %v, want that it is denied", last.ToSlice())
	}
}

// requests returns the requests by outcome.
func requests(collected metricdata.ResourceMetrics) map[string]float64 {
	counts := make(map[string]float64)
	for _, scope := range collected.ScopeMetrics {
		for _, m := range scope.Metrics {
			sum, ok := m.Data.(metricdata.Sum[float64])
			if !ok || m.Name != "ratelimit.requests" {
				continue
			}
			for _, p := range sum.DataPoints {
				outcome, _ := p.Attributes.Value("ratelimit.outcome")
				counts[outcome.AsString()] += p.Value
			}
		}
	}
	return counts
}
