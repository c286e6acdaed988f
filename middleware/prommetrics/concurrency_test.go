// The test of metrics under concurrent use.

package prommetrics_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/penstock-go/penstock/algorithms"
)

// TestConcurrency: metrics lose no request while Middlewares come and go, and Prometheus scrapes.
func TestConcurrency(t *testing.T) {
	const goroutines, each = 8, 500
	reg := prometheus.NewRegistry()
	m, memory := newMetrics(t, reg), newMemory(t)
	var wg sync.WaitGroup
	for g := range goroutines {
		wg.Go(func() {
			again := newMetrics(t, reg)
			limited := named(t, fmt.Sprint("memory", g%2), memory, again, byIP("p", algorithms.Nobody()), byIP(fmt.Sprint("p", g%2), hourly))
			for i := range each {
				_, _ = limited.Check(from(fmt.Sprintf("192.0.2.%d", i%200))) // denied
				if i%100 == 0 {
					passing := newMiddleware(t, newMemory(t), m, byIP(fmt.Sprintf("new-%d-%d", g, i), hourly))
					_, _ = passing.Check(from("192.0.2.1"))
					gather(t, reg)
					if err := passing.Close(context.Background()); err != nil {
						t.Error(err)
					}
					limited.TopDenied("p", 10)
				}
			}
		})
	}
	wg.Wait()
	values, _ := gather(t, reg)
	wants(t, values, map[string]float64{
		"ratelimit_requests_total{outcome=denied,policy=p,tier=}":   goroutines * each,
		"ratelimit_requests_total{outcome=allowed,policy=p0,tier=}": goroutines * each / 2,
		"ratelimit_decision_duration_seconds{source=local}":         goroutines*each + goroutines*each/100,
	})
	for series := range values {
		if series == "ratelimit_top_offender_denial_ratio{policy=new-0-0,tier=}" {
			t.Errorf("got %s of a closed Middleware", series)
		}
	}
}
