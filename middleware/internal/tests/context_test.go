// Tests of verdicts in contexts, and of nested middlewares.

package tests

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"reflect"
	"testing"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/headers"
	"github.com/penstock-go/penstock/keyfunc"
	"github.com/penstock-go/penstock/middleware"
)

// verdicts is a handler that keeps what it finds in the context.
type verdicts struct {
	got   []ratelimit.Verdict
	found []bool
}

func (v *verdicts) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	got, found := ratelimit.FromContext(r.Context())
	v.got, v.found = append(v.got, got), append(v.found, found)
}

func TestFromContext(t *testing.T) {
	p := byPlan("p", hourly, map[string]algorithms.Limit{"gold": algorithms.TokenBucket(20, time.Hour)})
	p.Skip = func(r *http.Request) bool { return r.URL.Path == "/free" }
	seen := new(verdicts)
	h := newMiddleware(t, newStill(t), nil, p, forAll("all", hourly)).Handler(seen)
	record(h, onPlan(from("192.0.2.1"), "gold"))
	record(h, onPlan(from("192.0.2.1"), "gold"))
	v := seen.got[1]
	if !seen.found[1] || !v.Allowed || v.Status != 0 || len(v.Policies) != 2 {
		t.Fatalf("got %+v, want the verdict of two policies", v)
	}
	gold, all := v.Policies[0], v.Policies[1]
	if gold.Name != "p" || gold.Tier != "gold" || gold.Limit != p.Tiers["gold"] || gold.Hidden || gold.Decision.Remaining != 18 {
		t.Errorf("got %+v, want p with 18 left of 20", gold)
	}
	if all.Name != "all" || all.Tier != "" || all.Limit != hourly || !all.Hidden || all.Decision.Remaining != 8 {
		t.Errorf("got %+v, want all with 8 left of 10", all)
	}
	record(newMiddleware(t, broken(errDown), &ratelimit.Options{Logger: quiet}, p).Handler(seen), from("192.0.2.1"))
	if v := seen.got[2]; !seen.found[2] || !v.Allowed || v.Policies[0].Decision.Source != algorithms.Undecided {
		t.Errorf("got %+v, want that nobody decided", v)
	}
	for name, r := range map[string]*http.Request{"no middleware": from("192.0.2.1"), "no policy applies": httptest.NewRequest("GET", "/free", nil)} {
		seen := new(verdicts)
		h := http.Handler(seen)
		if name != "no middleware" {
			h = newMiddleware(t, newStill(t), nil, p).Handler(seen)
		}
		record(h, r)
		if seen.found[0] || !reflect.DeepEqual(seen.got[0], ratelimit.Verdict{}) {
			t.Errorf("%s: got %+v, want none", name, seen.got[0])
		}
	}
}

// TestFromContextOutlivesTheRequest: a verdict that a handler keeps never becomes a later request's.
func TestFromContextOutlivesTheRequest(t *testing.T) {
	seen := new(verdicts)
	h := newMiddleware(t, newStill(t), nil, byIP("p", hourly), byIP("q", hourly)).Handler(seen)
	for range 10 {
		record(h, from("192.0.2.1"))
	}
	for i, v := range seen.got {
		for _, p := range v.Policies {
			if want := int64(9 - i); p.Decision.Remaining != want {
				t.Errorf("request %d: got %d left, want %d", i, p.Decision.Remaining, want)
			}
		}
	}
}

// TestRequestIsKept: the handler sees the same request, except for its context.
func TestRequestIsKept(t *testing.T) {
	type key struct{}
	r := from("192.0.2.1")
	r = r.WithContext(context.WithValue(r.Context(), key{}, "x"))
	record(newMiddleware(t, newStill(t), nil, byIP("p", hourly)).Handler(http.HandlerFunc(func(_ http.ResponseWriter, got *http.Request) {
		if got.URL != r.URL || got.Body != r.Body || got.Context().Value(key{}) != "x" {
			t.Errorf("got %+v, want what was sent", got)
		}
	})), r)
}

// TestNested: limiters may be stacked; the fields of both can be read as one list. A denial has those of the limiter that denied.
func TestNested(t *testing.T) {
	memory, seen := newStill(t), new(verdicts)
	all := &ratelimit.Options{Headers: headers.Draft | headers.SeparateFields | headers.XRateLimit}
	outer := newMiddleware(t, memory, all, byIP("outer", algorithms.TokenBucket(4, time.Hour)))
	inner := newMiddleware(t, memory, all, byIP("inner", algorithms.TokenBucket(3, time.Minute)))
	h := outer.Handler(inner.Handler(seen))
	w := record(h, from("192.0.2.1"))
	want := text(`Ratelimit: "outer";r=3;t=2700`, `Ratelimit: "inner";r=2;t=40`,
		`Ratelimit-Limit: 3`, `Ratelimit-Policy: "outer";q=4;w=3600`, `Ratelimit-Policy: "inner";q=3;w=60`,
		`Ratelimit-Remaining: 2`, `Ratelimit-Reset: 20`)
	got := w.Header().Clone()
	for _, name := range []string{"Limit", "Remaining", "Reset"} {
		if len(got.Values("X-RateLimit-"+name)) != 1 {
			t.Errorf("got %q, want one line of X-RateLimit-%s", got.Values("X-RateLimit-"+name), name)
		}
		got.Del("X-RateLimit-" + name)
	}
	if got := limits(got); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	if v := seen.got[0]; v.Policies[0].Name != "inner" {
		t.Errorf("got policy %q in the context, want the innermost", v.Policies[0].Name)
	}
	for range 2 {
		record(h, from("192.0.2.1"))
	}
	w = record(h, from("192.0.2.1"))
	if got := w.Header()["Ratelimit"]; w.Code != 429 || len(got) != 1 || got[0] != `"inner";r=0;t=20` || retryAfter(t, w.Header()) != 20 {
		t.Errorf("got status %d and\n%swant the inner's denial", w.Code, limits(w.Header()))
	}
	w = record(h, from("192.0.2.1"))
	if got := w.Header()["Ratelimit"]; w.Code != 429 || len(got) != 1 || got[0] != `"outer";r=0;t=900` || retryAfter(t, w.Header()) != 900 {
		t.Errorf("got status %d and\n%swant the outer's denial", w.Code, limits(w.Header()))
	}
}

// TestRetryAfterThatIsThere: there is one line, with the longer wait.
func TestRetryAfterThatIsThere(t *testing.T) {
	p := byIP("p", algorithms.TokenBucket(1, time.Minute))
	h := newMiddleware(t, drained(t, p), nil, p).Handler(ok)
	for there, want := range map[string]int{"5": 60, "3600": 3600, "Sat, 21 Nov 2026 13:00:00 GMT": 60, "0": 60} {
		w := httptest.NewRecorder()
		w.Header().Set("Retry-After", there)
		h.ServeHTTP(w, from("127.0.0.1"))
		if got := retryAfter(t, w.Header()); got != want {
			t.Errorf("got %d with %s there, want %d", got, there, want)
		}
	}
}

// TestCheckIsHandler: both decide the same requests alike.
func TestCheckIsHandler(t *testing.T) {
	policies := []ratelimit.Policy{
		{Name: "api", Key: keyfunc.FirstOf(apiKey, keyfunc.IP(nil)), Limit: algorithms.TokenBucket(3, time.Hour)},
		byIP("window", algorithms.SlidingWindowLog(5, time.Hour)), forAll("all", algorithms.TokenBucket(8, time.Hour)),
	}
	var handled []ratelimit.Verdict
	o := &ratelimit.Options{Refused: func(_ http.ResponseWriter, _ *http.Request, v ratelimit.Verdict) { handled = append(handled, v) }}
	h := newMiddleware(t, newStill(t), o, policies...).Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		v, _ := ratelimit.FromContext(r.Context())
		handled = append(handled, v)
	}))
	m := newMiddleware(t, newStill(t), nil, policies...)
	for i := range 60 {
		key := []string{"good-key", "guess", "", "a b"}[i%4]
		requests := [2]*http.Request{from("192.0.2.1"), from("192.0.2.1")}
		if i%5 > 0 {
			requests = [2]*http.Request{withKeys(key), withKeys(key)}
		}
		record(h, requests[0])
		got, err := m.Check(requests[1])
		if want := handled[i]; fmt.Sprint(exported(got)) != fmt.Sprint(exported(want)) {
			t.Errorf("request %d: got %+v, want %+v", i, got, want)
		}
		noLimit := errors.Is(err, keyfunc.ErrMalformed) || errors.Is(err, keyfunc.ErrUnknown)
		if (err != nil) != noLimit || noLimit != (got.Status == 400 || got.Status == 401) {
			t.Errorf("request %d: got error %v with status %d", i, err, got.Status)
		}
	}
}

// exported returns the exported fields of a verdict.
func exported(v ratelimit.Verdict) any {
	var all []any
	for _, p := range v.Policies {
		all = append(all, p.Name, p.Tier, p.Limit, p.Hidden, p.Outcome, p.Decision)
	}
	return append(all, v.Allowed, v.Degraded, v.Exempt, v.Status, v.RetryAfter, v.Delay)
}

// A preflight is a request as any other.
func TestPreflightsCount(t *testing.T) {
	r := with(with(from("192.0.2.1"), "Origin", "https://a.example"), "Access-Control-Request-Method", "PUT")
	r.Method = http.MethodOptions
	h := newMiddleware(t, newStill(t), nil, byIP("p", algorithms.Nobody())).Handler(ok)
	if w := record(h, r); w.Code != http.StatusForbidden {
		t.Errorf("got status %d, want 403", w.Code)
	}
}
