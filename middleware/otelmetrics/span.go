package otelmetrics

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/middleware"
)

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
