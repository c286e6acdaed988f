// The test of metrics under concurrent use.

package prommetrics_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/penstock-go/penstock/algorithms"
)

// TestConcurrency: nothing is lost, whoever decides, scrapes and asks who is denied at the same time.
func TestConcurrency(t *testing.T) {
	const goroutines, each = 8, 500
	reg := prometheus.NewRegistry()
	m, memory := newMetrics(t, reg), newMemory(t)
	var wg sync.WaitGroup
	for g := range goroutines {
		wg.Go(func() {
			again := newMetrics(t, reg)
			limited := newMiddleware(t, memory, again, byIP("p", algorithms.Nobody()), byIP(fmt.Sprint("p", g%2), hourly))
			again.WatchOffenders(limited)
			if err := again.Watch(fmt.Sprint("memory", g%2), memory); err != nil {
				t.Error(err)
			}
			for i := range each {
				_, _ = limited.Check(from(fmt.Sprintf("192.0.2.%d", i%200))) // denied
				if i%100 == 0 {                                              // a policy that nobody has met
					_, _ = newMiddleware(t, memory, m, byIP(fmt.Sprintf("new-%d-%d", g, i), hourly)).Check(from("192.0.2.1"))
					gather(t, reg)
					limited.TopDenied("p", 10)
				}
			}
		})
	}
	wg.Wait()
	values, _ := gather(t, reg)
	for series, want := range map[string]float64{
		"ratelimit_requests_total{outcome=denied,policy=p,tier=}":   goroutines * each,
		"ratelimit_requests_total{outcome=allowed,policy=p0,tier=}": goroutines * each / 2,
		"ratelimit_decision_duration_seconds{source=local}":         goroutines*each + goroutines*each/100,
	} {
		if values[series] != want {
			t.Errorf("%s: got %v, want %v", series, values[series], want)
		}
	}
	if got := values["ratelimit_distinct_keys{policy=p}"]; got < 180 || got > 220 {
		t.Errorf("got %v distinct keys, want about 200 in all middlewares", got)
	}
}
