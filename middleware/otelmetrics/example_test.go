package otelmetrics_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	sdk "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/middleware"
	"github.com/penstock-go/penstock/middleware/client"
	"github.com/penstock-go/penstock/middleware/otelmetrics"
)

var ok = http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})

// One line exports a Middleware's requests and its limiter through the provider of the service.
func ExampleNew() {
	reader := sdk.NewManualReader() // a service uses a PeriodicReader with its exporter
	provider := sdk.NewMeterProvider(sdk.WithReader(reader))
	opts := &ratelimit.Options{Observers: []ratelimit.Observer{ratelimit.Must(otelmetrics.New(provider, nil))}}
	orders := ratelimit.Must(ratelimit.New(algorithms.NewMemory(nil), opts, ratelimit.Policy{
		Name: "orders", Limit: algorithms.TokenBucket(2, time.Hour),
	}))
	for range 5 {
		orders.Handler(ok).ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil))
	}

	var collected metricdata.ResourceMetrics
	_ = reader.Collect(context.Background(), &collected)
	for _, m := range collected.ScopeMetrics[0].Metrics {
		if requests, ok := m.Data.(metricdata.Sum[float64]); ok && m.Name == "ratelimit.requests" {
			for _, p := range requests.DataPoints {
				if outcome, _ := p.Attributes.Value("ratelimit.outcome"); p.Value > 0 {
					fmt.Println(m.Name, outcome.AsString(), p.Value)
				}
			}
		}
	}
	// Unordered output:
	// ratelimit.requests allowed 2
	// ratelimit.requests denied 3
}

// The same for the requests that a client sends to a service that limits it.
func ExampleNewClient() {
	metrics := ratelimit.Must(otelmetrics.NewClient(sdk.NewMeterProvider()))
	transport, err := client.NewTransport(nil, &client.Options{Name: "bank", Observers: []client.Observer{metrics}})
	if err != nil {
		fmt.Println(err)
		return
	}
	_ = http.Client{Transport: transport}
	fmt.Println("ready")
	// Output: ready
}
