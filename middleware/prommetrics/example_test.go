// An example of all metrics.

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
	"github.com/penstock-go/penstock/keyfunc"
	ratelimit "github.com/penstock-go/penstock/middleware"
	"github.com/penstock-go/penstock/middleware/prommetrics"
)

// The decisions of the middleware, the counts of its limiter, and the client that is denied most.
func Example() {
	registry := prometheus.NewRegistry() // a service has prometheus.DefaultRegisterer
	metrics := ratelimit.Must(prommetrics.New(registry, nil))

	limiter := algorithms.NewMemory(nil)
	if err := metrics.Watch("memory", limiter); err != nil {
		fmt.Println(err)
	}
	orders := ratelimit.Must(ratelimit.New(limiter, &ratelimit.Options{Observer: metrics}, ratelimit.Policy{
		Name: "orders", Key: keyfunc.IP(nil), Limit: algorithms.TokenBucket(2, time.Hour),
	}))
	metrics.WatchOffenders(orders)

	mux := http.NewServeMux()
	mux.Handle("GET /orders/{id}", orders.Handler(http.NotFoundHandler()))
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	for range 5 {
		mux.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/orders/7", nil))
	}

	w := httptest.NewRecorder()
	mux.ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	for line := range strings.Lines(w.Body.String()) {
		for _, name := range []string{"requests_total", "distinct_keys", "top_offender", "memory_keys"} {
			if strings.HasPrefix(line, "ratelimit_"+name) && !strings.HasSuffix(line, " 0\n") {
				fmt.Print(line)
			}
		}
	}
	// Output:
	// ratelimit_distinct_keys{policy="orders"} 1
	// ratelimit_memory_keys{limiter="memory"} 1
	// ratelimit_requests_total{outcome="allowed",policy="orders",tier=""} 2
	// ratelimit_requests_total{outcome="denied",policy="orders",tier=""} 3
	// ratelimit_top_offender_denial_ratio{policy="orders"} 1
}
