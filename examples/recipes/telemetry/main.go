// Command telemetry sends the metrics of its limits, and spans with the outcome of each limit, to OpenTelemetry.
package main

import (
	"context"
	"errors"
	"log"
	"net/http"
	"time"

	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel/exporters/stdout/stdoutmetric"
	"go.opentelemetry.io/otel/exporters/stdout/stdouttrace"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/penstock-go/penstock/algorithms"
	ratelimit "github.com/penstock-go/penstock/middleware"
	"github.com/penstock-go/penstock/middleware/otelmetrics"
)

// server returns a handler whose spans and metrics go to the providers. otelhttp starts the span of a request, so it
// stands outside the limits.
func server(meters *sdkmetric.MeterProvider, tracers *sdktrace.TracerProvider) (http.Handler, error) {
	metrics, err := otelmetrics.New(meters, nil)
	if err != nil {
		return nil, err
	}
	limited, err := ratelimit.New(algorithms.NewMemory(nil), &ratelimit.Options{Observers: []ratelimit.Observer{metrics}},
		ratelimit.Policy{Name: "orders", Limit: algorithms.TokenBucket(60, time.Minute)})
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.Handle("GET /v1/orders/{id}", limited.Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("{}\n")) })))
	return otelhttp.NewHandler(mux, "api", otelhttp.WithTracerProvider(tracers), otelhttp.WithMeterProvider(meters)), nil
}

func main() {
	metricsOut, err := stdoutmetric.New() // your service: otlpmetrichttp.New(ctx), and otlptracehttp.New(ctx)
	spansOut, spansErr := stdouttrace.New()
	if err := errors.Join(err, spansErr); err != nil {
		log.Fatal(err)
	}
	meters := sdkmetric.NewMeterProvider(sdkmetric.WithReader(sdkmetric.NewPeriodicReader(metricsOut)))
	tracers := sdktrace.NewTracerProvider(sdktrace.WithBatcher(spansOut))
	h, err := server(meters, tracers)
	if err == nil {
		err = http.ListenAndServe("127.0.0.1:8080", h)
	}
	log.Fatal(errors.Join(err, meters.Shutdown(context.Background()), tracers.Shutdown(context.Background())))
}
