package otelmetrics

import (
	"context"
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/middleware"
	"github.com/penstock-go/penstock/middleware/client"
	"github.com/penstock-go/penstock/middleware/prommetrics"
)

// Metrics are an Observer of Middlewares. The zero value does not work. List them in the
// Options.Observers of each Middleware. They are safe for concurrent use.
type Metrics struct {
	counts      *prommetrics.Metrics
	instruments *instruments
	durations   metric.Float64Histogram
	lag         metric.Float64Histogram
	bySource    [algorithms.Local + 1]metric.MeasurementOption
}

var _ ratelimit.Observer = (*Metrics)(nil)

// New makes the instruments with a meter of the provider; nil options mean the defaults. Call it
// once for each provider, because two sets of Metrics would report the same series. It fails if
// the provider is nil, or if the options are misconfigured.
func New(provider metric.MeterProvider, o *prommetrics.Options) (*Metrics, error) {
	registry := prometheus.NewRegistry()
	counts, err := prommetrics.New(registry, o)
	if err != nil {
		return nil, err
	}
	in, err := newInstruments(provider, registry)
	if err != nil {
		return nil, err
	}
	m := &Metrics{counts: counts, instruments: in}
	var durationsErr, lagErr error
	m.durations, durationsErr = in.histogram("ratelimit_decision_duration_seconds")
	m.lag, lagErr = in.histogram("ratelimit_settlement_lag_seconds")
	for source := range m.bySource {
		set := attribute.NewSet(attribute.String("ratelimit.source", algorithms.Source(source).String()))
		m.bySource[source] = metric.WithAttributeSet(set)
	}
	return m, errors.Join(durationsErr, lagErr)
}

// Observe implements ratelimit.Observer.
func (m *Metrics) Observe(ctx context.Context, e ratelimit.Event) {
	m.counts.Observe(ctx, e)
	switch v := &e.Verdict; e.Kind {
	case ratelimit.Decided:
		if v.Asked() {
			m.durations.Record(ctx, e.Elapsed.Seconds(), m.bySource[min(v.Source(), algorithms.Local)])
		}
		describe(ctx, v)
	case ratelimit.Settled:
		if !errors.Is(e.Err, ratelimit.ErrNotSettled) { // nothing was tried, so there is no delay
			m.lag.Record(ctx, e.Elapsed.Seconds())
		}
	case ratelimit.Registered:
		m.instruments.update()
	}
}

// ClientMetrics are an Observer of package client's Transports. The zero value does not work. List
// them in the Options.Observers of each Transport. They are safe for concurrent use.
type ClientMetrics struct {
	counts      *prommetrics.ClientMetrics
	instruments *instruments
}

var _ client.Observer = (*ClientMetrics)(nil)

// NewClient is [New] for metrics of Transports.
func NewClient(provider metric.MeterProvider) (*ClientMetrics, error) {
	registry := prometheus.NewRegistry()
	counts, err := prommetrics.NewClient(registry)
	if err != nil {
		return nil, err
	}
	in, err := newInstruments(provider, registry)
	if err != nil {
		return nil, err
	}
	return &ClientMetrics{counts, in}, nil
}

// Observe implements client.Observer.
func (m *ClientMetrics) Observe(ctx context.Context, e client.Event) {
	m.counts.Observe(ctx, e)
	if e.Kind == client.Registered {
		m.instruments.update()
	}
}

// Exemplar returns the trace and the span of a sampled request, for the Exemplar of
// [prommetrics.Options]; nil otherwise.
func Exemplar(ctx context.Context) prometheus.Labels {
	c := trace.SpanContextFromContext(ctx)
	if !c.IsSampled() {
		return nil
	}
	return prometheus.Labels{"trace_id": c.TraceID().String(), "span_id": c.SpanID().String()}
}

// describe adds a verdict to the span of the request. Each policy has attributes of its own, so a
// Middleware inside another one overwrites nothing that it does not know better.
func describe(ctx context.Context, v *ratelimit.Verdict) {
	span := trace.SpanFromContext(ctx)
	if !span.IsRecording() {
		return
	}
	source := min(v.Source(), algorithms.Local) // a limiter of another module may report one that does not exist
	attributes := []attribute.KeyValue{
		attribute.Bool("ratelimit.allowed", v.Allowed),
		attribute.String("ratelimit.source", source.String()),
	}
	if wait := v.RetryAfter; !v.Allowed && wait > 0 && wait < algorithms.Never {
		attributes = append(attributes, attribute.Int64("ratelimit.retry_after", int64((wait-1)/time.Second)+1))
	}
	for i := range v.Policies {
		p := &v.Policies[i]
		attributes = append(attributes, attribute.String("ratelimit.outcome."+p.Name, p.Outcome.String()))
		if p.Decision.Source != algorithms.Undecided && !p.Banned {
			attributes = append(attributes, attribute.Int64("ratelimit.remaining."+p.Name, p.Decision.Remaining))
		}
	}
	span.SetAttributes(attributes...)
}
