package otelmetrics_test

import (
	"context"
	"errors"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	sdk "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.uber.org/goleak"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/middleware"
	"github.com/penstock-go/penstock/middleware/client"
	"github.com/penstock-go/penstock/middleware/otelmetrics"
	"github.com/penstock-go/penstock/middleware/prommetrics"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// encoder writes attributes as name=value, sorted by name.
type encoder struct{}

func (encoder) Encode(i attribute.Iterator) string {
	var all []string
	for i.Next() {
		all = append(all, strings.TrimPrefix(string(i.Attribute().Key), "ratelimit.")+"="+i.Attribute().Value.String())
	}
	return strings.Join(all, ",")
}

func (encoder) ID() attribute.EncoderID { return attribute.EncoderID{} }

func TestNewRefuses(t *testing.T) {
	if _, err := otelmetrics.New(nil, nil); err == nil || !strings.HasPrefix(err.Error(), "ratelimit: ") {
		t.Errorf("got %v, want that the provider is nil", err)
	}
	if _, err := otelmetrics.NewClient(nil); err == nil || !strings.HasPrefix(err.Error(), "ratelimit: ") {
		t.Errorf("got %v, want that the provider is nil", err)
	}
	if _, err := otelmetrics.New(sdk.NewMeterProvider(), &prommetrics.Options{Clients: map[string]string{"42": "x"}}); err == nil {
		t.Error("got no error of the options")
	}
}

// TestSpans: the span of a request has the verdict of each policy, also of two Middlewares, and no key of the client.
func TestSpans(t *testing.T) {
	ended := tracetest.NewSpanRecorder()
	tracer := trace.NewTracerProvider(trace.WithSpanProcessor(ended)).Tracer("test")
	opts := &ratelimit.Options{Observers: []ratelimit.Observer{newMetrics(t, sdk.NewMeterProvider())}}
	memory := algorithms.NewMemory(nil)
	outer := ratelimit.Must(ratelimit.New(memory, opts, ratelimit.Policy{Name: "all", Limit: algorithms.FixedWindow(10, time.Hour)}))
	inner := ratelimit.Must(ratelimit.New(memory, opts,
		ratelimit.Policy{Name: "orders", Limit: algorithms.TokenBucket(1, time.Hour)},
		ratelimit.Policy{Name: "never", Limit: algorithms.Nobody(), Shadow: true}))
	h := outer.Handler(inner.Handler(ok))
	for range 2 {
		ctx, span := tracer.Start(t.Context(), "GET /orders")
		h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil).WithContext(ctx))
		span.End()
	}
	h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil)) // without a span
	for i, want := range []string{
		"allowed=true,outcome.all=allowed,outcome.never=shadow_denied,outcome.orders=allowed," +
			"remaining.all=9,remaining.never=0,remaining.orders=0,source=local",
		"allowed=false,outcome.all=allowed,outcome.never=shadow_denied,outcome.orders=denied," +
			"remaining.all=8,remaining.never=0,remaining.orders=0,retry_after=3600,source=local",
	} {
		set := attribute.NewSet(ended.Ended()[i].Attributes()...)
		if got := set.Encoded(encoder{}); got != want {
			t.Errorf("span %d:\ngot  %s\nwant %s", i, got, want)
		}
	}
}

// TestLate: settlements have a delay, except dropped ones.
func TestLate(t *testing.T) {
	reader := sdk.NewManualReader()
	m := newMetrics(t, sdk.NewMeterProvider(sdk.WithReader(reader)))
	limited := ratelimit.Must(ratelimit.New(algorithms.NewMemory(nil), &ratelimit.Options{Observers: []ratelimit.Observer{m}},
		ratelimit.Policy{Name: "p", Limit: algorithms.TokenBucket(1, time.Hour)}))
	for _, err := range []error{nil, errors.New("down"), ratelimit.ErrNotSettled} {
		m.Observe(t.Context(), ratelimit.Event{Kind: ratelimit.Settled, Policy: "p", Err: err, Elapsed: time.Second})
	}
	got := read(t, reader)
	for series, want := range map[string]float64{
		"ratelimit_settlement_lag_seconds{}":          2,
		"ratelimit_settlements_total{result=dropped}": 1,
		"ratelimit_settlements_total{result=failed}":  1,
	} {
		if got[series] != want {
			t.Errorf("%s: got %v, want %v", series, got[series], want)
		}
	}
	if err := limited.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if after := read(t, reader); after["ratelimit_settlements_total{result=failed}"] != 1 {
		t.Error("a counter vanished with its Middleware")
	} else if _, found := after["ratelimit_memory_keys{limiter=memory}"]; found {
		t.Error("the gauges of a closed Middleware stay")
	}
}

// TestDifferences: a reader of differences receives each request once, also when a Middleware registers between its readings.
func TestDifferences(t *testing.T) {
	delta := func(sdk.InstrumentKind) metricdata.Temporality { return metricdata.DeltaTemporality }
	reader := sdk.NewManualReader(sdk.WithTemporalitySelector(delta))
	m := newMetrics(t, sdk.NewMeterProvider(sdk.WithReader(reader)))
	opts, served := &ratelimit.Options{Observers: []ratelimit.Observer{m}}, 0.0
	for _, policy := range []string{"a", "b", "c"} {
		limited := ratelimit.Must(ratelimit.New(algorithms.NewMemory(nil), opts, ratelimit.Policy{Name: policy, Limit: algorithms.TokenBucket(9, time.Hour)}))
		for range 3 {
			limited.Handler(ok).ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil))
		}
		for series, n := range read(t, reader) {
			if strings.HasPrefix(series, "ratelimit_requests_total{") {
				served += n
			}
		}
	}
	if served != 9 {
		t.Errorf("got %v requests in sum, want 9", served)
	}
}

// TestClient: Transports count as in prommetrics.
func TestClient(t *testing.T) {
	reader := sdk.NewManualReader()
	m, err := otelmetrics.NewClient(sdk.NewMeterProvider(sdk.WithReader(reader)))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range []client.Event{
		{Kind: client.Registered, Name: "bank"},
		{Kind: client.Sent, Name: "bank", Attempt: 1, Denied: true},
		{Kind: client.Waited, Name: "bank", Reason: "retry", Elapsed: 2 * time.Second},
		{Kind: client.Sent, Name: "bank", Attempt: 2},
	} {
		m.Observe(context.Background(), e)
	}
	got := read(t, reader)
	for series, want := range map[string]float64{
		"ratelimit_client_requests_total{client=bank,outcome=answered}": 1,
		"ratelimit_client_requests_total{client=bank,outcome=denied}":   1,
		"ratelimit_client_retries_total{client=bank}":                   1,
		"ratelimit_client_wait_seconds{client=bank,reason=retry}":       0, // a counter: its name ends in total
		"ratelimit_client_wait_seconds_total{client=bank,reason=retry}": 2,
	} {
		if got[series] != want {
			t.Errorf("%s: got %v, want %v", series, got[series], want)
		}
	}
}

// TestUnits: instruments have the units of OpenTelemetry, and their attributes a namespace.
func TestUnits(t *testing.T) {
	reader := sdk.NewManualReader()
	m := newMetrics(t, sdk.NewMeterProvider(sdk.WithReader(reader)))
	ratelimit.Must(ratelimit.New(algorithms.NewMemory(nil), &ratelimit.Options{Observers: []ratelimit.Observer{m}}, ratelimit.Policy{Name: "p", Limit: algorithms.TokenBucket(1, time.Hour)}))
	var collected metricdata.ResourceMetrics
	if err := reader.Collect(t.Context(), &collected); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"ratelimit.requests": "{request}", "ratelimit.decisions": "{request}", "ratelimit.near_limit": "{request}", "ratelimit.memory_keys": "{key}",
		"ratelimit.top_offender_denial_ratio": "1", "ratelimit.limit_window": "s", "ratelimit.limit_units": "{unit}", "ratelimit.findings": "{finding}",
	}
	for _, one := range collected.ScopeMetrics[0].Metrics {
		if unit, ok := want[one.Name]; ok && one.Unit != unit {
			t.Errorf("%s: got the unit %q, want %q", one.Name, one.Unit, unit)
		}
		delete(want, one.Name)
		if sum, ok := one.Data.(metricdata.Sum[float64]); ok && one.Name == "ratelimit.requests" {
			if policy, _ := sum.DataPoints[0].Attributes.Value("ratelimit.policy"); policy.AsString() != "p" {
				t.Errorf("got the attributes %v, want ratelimit.policy", sum.DataPoints[0].Attributes)
			}
		}
	}
	if len(want) > 0 {
		t.Errorf("got no %v", want)
	}
}

// TestExemplar: only a sampled request has one.
func TestExemplar(t *testing.T) {
	if got := otelmetrics.Exemplar(t.Context()); got != nil {
		t.Errorf("got %v without a span, want none", got)
	}
	ctx, span := trace.NewTracerProvider(trace.WithSampler(trace.AlwaysSample())).Tracer("test").Start(t.Context(), "GET /")
	defer span.End()
	got := otelmetrics.Exemplar(ctx)
	if got["trace_id"] != span.SpanContext().TraceID().String() || got["span_id"] != span.SpanContext().SpanID().String() {
		t.Errorf("got %v, want the IDs of the span", got)
	}
}
