package prommetrics_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/middleware"
	"github.com/penstock-go/penstock/middleware/prommetrics"
)

// One line exports a Middleware's requests, its limiter, and the share of its worst offender.
func ExampleNew() {
	registry := prometheus.NewRegistry() // a service uses prometheus.DefaultRegisterer
	opts := &ratelimit.Options{Observers: []ratelimit.Observer{ratelimit.Must(prommetrics.New(registry, nil))}}
	orders := ratelimit.Must(ratelimit.New(algorithms.NewMemory(nil), opts, ratelimit.Policy{
		Name: "orders", Limit: algorithms.TokenBucket(2, time.Hour),
	}))

	mux := http.NewServeMux()
	mux.Handle("GET /orders/{id}", orders.Handler(http.NotFoundHandler()))
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	for range 5 {
		mux.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/orders/7", nil))
	}

	w := httptest.NewRecorder()
	mux.ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	for line := range strings.Lines(w.Body.String()) {
		for _, name := range []string{"requests_total", "top_offender", "memory_keys"} {
			if strings.HasPrefix(line, "ratelimit_"+name) && !strings.HasSuffix(line, " 0\n") {
				fmt.Print(line)
			}
		}
	}
	// Output:
	// ratelimit_memory_keys{limiter="memory"} 1
	// ratelimit_requests_total{outcome="allowed",policy="orders",tier=""} 2
	// ratelimit_requests_total{outcome="denied",policy="orders",tier=""} 3
	// ratelimit_top_offender_denial_ratio{policy="orders",tier=""} 1
}
