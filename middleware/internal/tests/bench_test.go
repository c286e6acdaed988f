// Benchmarks of handlers and checks.

package tests

import (
	"net/http"
	"testing"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/headers"
	"github.com/penstock-go/penstock/keyfunc"
	"github.com/penstock-go/penstock/middleware"
)

// A sink is a writer that costs nothing itself.
type sink struct{ h http.Header }

func (s *sink) Header() http.Header         { return s.h }
func (s *sink) Write(p []byte) (int, error) { return len(p), nil }
func (s *sink) WriteHeader(int)             {}

func BenchmarkHandler(b *testing.B) {
	plenty := algorithms.TokenBucket(1e9, time.Second)
	perRoute := ratelimit.Policy{Name: "client-route", Key: keyfunc.Join(keyfunc.IP(nil), keyfunc.Route()), Limit: algorithms.SlidingWindowCounter(1e9, time.Second)}
	for _, bb := range []struct {
		name     string
		dialect  headers.Dialect
		policies []ratelimit.Policy
	}{
		{"ip/draft", headers.Draft, []ratelimit.Policy{byIP("ip", plenty)}},
		{"ip/default", 0, []ratelimit.Policy{byIP("ip", plenty)}},
		{"ip/x-ratelimit", headers.XRateLimit, []ratelimit.Policy{byIP("ip", plenty)}},
		{"ip-new/x-ratelimit", headers.XRateLimit, []ratelimit.Policy{byIP("ip", algorithms.FixedWindow(1e9, 24*time.Hour))}}, // no response repeats a number
		{"three/draft", headers.Draft, []ratelimit.Policy{byIP("ip", plenty), perRoute, forAll("all", plenty)}},
		{"three/default", 0, []ratelimit.Policy{byIP("ip", plenty), perRoute, forAll("all", plenty)}},
		{"denied/draft", headers.Draft, []ratelimit.Policy{byIP("ip", algorithms.TokenBucket(1, 24*time.Hour))}},
		{"denied/window", headers.Draft, []ratelimit.Policy{byIP("ip", algorithms.FixedWindow(1, 24*time.Hour))}},
		{"denied/all", headers.Draft, []ratelimit.Policy{forAll("all", algorithms.TokenBucket(1, 3*time.Minute))}},
		{"denied/nobody", headers.Draft, []ratelimit.Policy{byIP("ip", algorithms.Nobody())}},
	} {
		b.Run(bb.name, func(b *testing.B) {
			h := newMiddleware(b, newMemory(b), &ratelimit.Options{Headers: bb.dialect}, bb.policies...).Handler(ok)
			w, r := &sink{h: make(http.Header)}, from("192.0.2.1")
			b.ReportAllocs()
			for b.Loop() {
				clear(w.h)
				h.ServeHTTP(w, r)
			}
		})
	}
	b.Run("parallel/ip/draft", func(b *testing.B) {
		h := newMiddleware(b, newMemory(b), &ratelimit.Options{Headers: headers.Draft}, byIP("ip", plenty)).Handler(ok)
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			w, r := &sink{h: make(http.Header)}, from("192.0.2.1")
			for pb.Next() {
				clear(w.h)
				h.ServeHTTP(w, r)
			}
		})
	})
}

func BenchmarkCheck(b *testing.B) {
	m := newMiddleware(b, newMemory(b), nil, byIP("ip", algorithms.TokenBucket(1e9, time.Second)))
	r := from("192.0.2.1")
	b.ReportAllocs()
	for b.Loop() {
		if v, err := m.Check(r); err != nil || !v.Allowed {
			b.Fatal(v, err)
		}
	}
}
