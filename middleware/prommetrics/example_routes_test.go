package prommetrics_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/penstock-go/penstock/algorithms"
	ratelimit "github.com/penstock-go/penstock/middleware"
	"github.com/penstock-go/penstock/middleware/prommetrics"
)

// Two routes of a chi router have two limits, and their metrics stand in one registry.
func Example_routes() {
	registry := prometheus.NewRegistry()
	show, create := func(http.ResponseWriter, *http.Request) {}, func(http.ResponseWriter, *http.Request) {}

	limiter := algorithms.NewMemory(nil)
	r := chi.NewRouter()

	opts := &ratelimit.Options{Observers: []ratelimit.Observer{ratelimit.Must(prommetrics.New(registry, nil))}}
	read := ratelimit.Must(ratelimit.New(limiter, opts, ratelimit.Policy{Name: "read", Limit: algorithms.TokenBucket(600, time.Minute)}))
	write := ratelimit.Must(ratelimit.New(limiter, opts, ratelimit.Policy{Name: "write", Limit: algorithms.TokenBucket(60, time.Minute)}))
	r.With(read.Handler).Get("/orders/{id}", show) // or, for all routes, r.Use(read.Handler)
	r.With(write.Handler).Post("/orders", create)
	r.Handle("/metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))

	for _, route := range []struct{ method, path string }{{"GET", "/orders/1"}, {"POST", "/orders"}} {
		w := httptest.NewRecorder()
		r.ServeHTTP(w, httptest.NewRequest(route.method, route.path, nil))
		fmt.Println(route.method, w.Header().Get("RateLimit-Policy"))
	}
	// Output:
	// GET "read";q=600;w=60
	// POST "write";q=60;w=60
}
