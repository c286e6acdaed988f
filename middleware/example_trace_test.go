// Examples of traces, and of the clients that are denied most.

package ratelimit_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/keyfunc"
	"github.com/penstock-go/penstock/middleware"
)

// A span stands for the trace.Span of OpenTelemetry, which SpanFromContext(ctx) finds.
type span interface {
	AddEvent(name string, attributes ...slog.Attr) // attribute.KeyValue
}

type spanKey struct{}

func spanFromContext(ctx context.Context) (span, bool) {
	s, ok := ctx.Value(spanKey{}).(span)
	return s, ok
}

// printed is a span that prints its events.
type printed struct{}

func (printed) AddEvent(name string, attributes ...slog.Attr) { fmt.Println(name, attributes) }

// trace adds the outcome of each policy to the span of the request.
func trace(ctx context.Context, e ratelimit.Event) {
	s, ok := spanFromContext(ctx)
	if e.Kind != ratelimit.Decided || !ok {
		return
	}
	for _, p := range e.Verdict.Policies {
		s.AddEvent("ratelimit", slog.String("policy", p.Name), slog.Any("outcome", p.Outcome),
			slog.Any("source", p.Decision.Source), slog.Int64("remaining", p.Decision.Remaining),
			slog.Bool("failed", e.Err != nil), slog.Bool("slow", e.Elapsed > time.Second)) // shared.Reason(e.Err) says why in a word
	}
}

// An observer adds the outcomes to the spans of requests.
func ExampleObserver_tracing() {
	limiter := algorithms.NewMemory(nil)
	limited := ratelimit.Must(ratelimit.New(limiter, &ratelimit.Options{Observers: []ratelimit.Observer{ratelimit.ObserverFunc(trace)}}, ratelimit.Policy{
		Name: "orders", Key: keyfunc.IP(nil), Limit: algorithms.TokenBucket(1, time.Hour),
	}))
	r := httptest.NewRequest("GET", "/orders", nil)
	r = r.WithContext(context.WithValue(r.Context(), spanKey{}, printed{}))
	for range 2 {
		limited.Handler(http.NotFoundHandler()).ServeHTTP(httptest.NewRecorder(), r)
	}
	// Output:
	// ratelimit [policy=orders outcome=allowed source=local remaining=0 failed=false slow=false]
	// ratelimit [policy=orders outcome=denied source=local remaining=0 failed=false slow=false]
}

// The clients that a policy denies most, for a page that only operators see. PlainKeys shows their addresses.
func ExampleMiddleware_TopDenied() {
	limiter := algorithms.NewMemory(nil)
	limited := ratelimit.Must(ratelimit.New(limiter, &ratelimit.Options{PlainKeys: true}, ratelimit.Policy{
		Name: "orders", Key: keyfunc.IP(nil), Limit: algorithms.TokenBucket(1, time.Hour),
	}))
	r := httptest.NewRequest("GET", "/orders", nil)
	for range 5 {
		limited.Handler(http.NotFoundHandler()).ServeHTTP(httptest.NewRecorder(), r)
	}
	for _, o := range limited.TopDenied("orders", 10) {
		fmt.Printf("%s: %d of %d denials, give or take %d\n", o.Key, o.Denied, o.Of, o.Error)
	}
	// Output: ip=192.0.2.1: 4 of 4 denials, give or take 0
}
