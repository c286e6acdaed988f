// Examples of traces, and of the clients that are denied most.

package middleware_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/algorithms/shared"
	"github.com/penstock-go/penstock/keyfunc"
	ratelimit "github.com/penstock-go/penstock/middleware"
)

// A span is what of OpenTelemetry's trace.Span a limiter needs. There, SpanFromContext(ctx) finds it.
type span interface {
	AddEvent(name string, attributes ...slog.Attr) // attribute.KeyValue
}

type spanKey struct{}

func spanFromContext(ctx context.Context) (span, bool) {
	s, ok := ctx.Value(spanKey{}).(span)
	return s, ok
}

// printed is a span that prints what it is told.
type printed struct{}

func (printed) AddEvent(name string, attributes ...slog.Attr) { fmt.Println(name, attributes) }

// trace tells the span of a request what each policy made of it.
func trace(ctx context.Context, e ratelimit.Event) {
	s, ok := spanFromContext(ctx)
	if e.Kind != ratelimit.Decided || !ok {
		return
	}
	for i, p := range e.Verdict.Policies {
		s.AddEvent("ratelimit", slog.String("policy", p.Name), slog.Any("outcome", e.Verdict.Outcome(i)),
			slog.Any("source", p.Decision.Source), slog.Int64("remaining", p.Decision.Remaining),
			slog.String("reason", shared.Reason(e.Err)), slog.Bool("slow", e.Elapsed > time.Second))
	}
}

// The event has what a span needs. Who counts as well calls both: an Observer may be a function that calls others.
func ExampleObserver_tracing() {
	limiter := algorithms.NewMemory(nil)
	limited := ratelimit.Must(ratelimit.New(limiter, &ratelimit.Options{Observer: ratelimit.ObserverFunc(trace)}, ratelimit.Policy{
		Name: "orders", Key: keyfunc.IP(nil), Limit: algorithms.TokenBucket(1, time.Hour),
	}))
	r := httptest.NewRequest("GET", "/orders", nil)
	r = r.WithContext(context.WithValue(r.Context(), spanKey{}, printed{}))
	for range 2 {
		limited.Handler(ok).ServeHTTP(httptest.NewRecorder(), r)
	}
	// Output:
	// ratelimit [policy=orders outcome=allowed source=local remaining=0 reason= slow=false]
	// ratelimit [policy=orders outcome=denied source=local remaining=0 reason= slow=false]
}

// Who is denied most, for a page that only operators see. Addresses are shown as hashes, unless the policy says
// otherwise.
func ExampleMiddleware_TopDenied() {
	limiter := algorithms.NewMemory(nil)
	limited := ratelimit.Must(ratelimit.New(limiter, nil, ratelimit.Policy{
		Name: "orders", Key: keyfunc.IP(nil), Limit: algorithms.TokenBucket(1, time.Hour), ShowKeys: ratelimit.ShowPrefix,
	}))
	r := httptest.NewRequest("GET", "/orders", nil)
	for range 5 {
		limited.Handler(ok).ServeHTTP(httptest.NewRecorder(), r)
	}
	for _, o := range limited.TopDenied("orders", 10) {
		fmt.Printf("%s: %d of %d denials, give or take %d\n", o.Key, o.Denied, o.Of, o.Error)
	}
	// Output: ip=192.…: 4 of 4 denials, give or take 0
}
