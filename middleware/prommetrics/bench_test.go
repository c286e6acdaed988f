package prommetrics_test

import (
	"context"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/middleware"
)

// decidedOf returns the event of a request under n policies.
func decidedOf(t testing.TB, n int) ratelimit.Event {
	t.Helper()
	var seen eventLog
	policies := []ratelimit.Policy{byIP("charges-merchant", hourly), byIP("charges-route", hourly), byIP("charges-capacity", hourly)}[:n]
	if _, err := newMiddleware(t, newMemory(t), &seen, policies...).Check(from("192.0.2.1")); err != nil {
		t.Fatal(err)
	}
	return seen.last
}

// An eventLog keeps the last event of a request.
type eventLog struct{ last ratelimit.Event }

func (l *eventLog) Observe(_ context.Context, e ratelimit.Event) {
	if e.Kind == ratelimit.Decided {
		l.last = e
	}
}

func TestObserveDoesNotAllocate(t *testing.T) {
	m, e := newMetrics(t, prometheus.NewRegistry()), decidedOf(t, 3)
	if got := testing.AllocsPerRun(1000, func() { m.Observe(context.Background(), e) }); got != 0 {
		t.Errorf("got %v allocations, want none", got)
	}
}

func BenchmarkObserve(b *testing.B) {
	for name, n := range map[string]int{"one": 1, "three": 3} {
		e := decidedOf(b, n)
		b.Run(name, func(b *testing.B) {
			m := newMetrics(b, prometheus.NewRegistry())
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				e.Elapsed = time.Duration(1_000 + i%100_000)
				m.Observe(b.Context(), e)
			}
		})
		b.Run("parallel/"+name, func(b *testing.B) {
			m := newMetrics(b, prometheus.NewRegistry())
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					m.Observe(context.Background(), e)
				}
			})
		})
	}
}

// BenchmarkCheck measures a whole decision in memory, with metrics and without.
func BenchmarkCheck(b *testing.B) {
	plenty := byIP("ip", algorithms.TokenBucket(1e9, time.Second))
	for name, o := range map[string]*ratelimit.Options{
		"observed": {Observers: []ratelimit.Observer{newMetrics(b, prometheus.NewRegistry())}}, "alone": nil,
	} {
		b.Run(name, func(b *testing.B) {
			limited, r := ratelimit.Must(ratelimit.New(newMemory(b), o, plenty)), from("192.0.2.1")
			b.ReportAllocs()
			for b.Loop() {
				if v, err := limited.Check(r); err != nil || !v.Allowed {
					b.Fatal(v, err)
				}
			}
		})
	}
}
