// Examples of costs that are known late, and of route tables.

package middleware_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/keyfunc"
	ratelimit "github.com/penstock-go/penstock/middleware"
)

// Tokens of a language model: a request reserves what most of them need, and
// pays for what it did use.
func ExampleSettle() {
	memory := algorithms.NewMemory(nil)
	daily := algorithms.TokenBucket(10_000, 24*time.Hour)
	tokens := ratelimit.Must(ratelimit.New(memory, nil, ratelimit.Policy{
		Name:  "completions",
		Key:   keyfunc.IP(nil),
		Limit: daily,
		Cost:  func(r *http.Request) int64 { return 4_000 }, // or what a header asks for, within bounds
		Late:  true,
	}))
	h := tokens.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for used := int64(500); used <= 1_500; used += 500 { // while it streams: the total so far
			if err := ratelimit.Settle(r.Context(), "completions", used); err != nil {
				fmt.Println(err)
			}
		}
	}))
	h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/v1/completions", nil))

	_ = tokens.Close(context.Background()) // waits until all is settled
	checks := []algorithms.Check{{Policy: "completions", Key: "ip=192.0.2.1", Limit: daily}}
	fmt.Println(memory.Allow(context.Background(), checks), checks[0].Decision.Remaining)
	// Output: <nil> 8500
}

// Only failed logins count. Each reserves a try until its outcome is known, so
// that no more than five can fail however many come at once.
func ExamplePolicy_chargeIf() {
	memory := algorithms.NewMemory(nil)
	fivePerMinute := algorithms.SlidingWindowLog(5, time.Minute)
	logins := ratelimit.Must(ratelimit.New(memory, nil, ratelimit.Policy{
		Name:     "login",
		Key:      keyfunc.IP(nil),
		Limit:    fivePerMinute,
		ChargeIf: func(status int) bool { return status == http.StatusUnauthorized },
	}))
	h := logins.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Password") != "swordfish" {
			w.WriteHeader(http.StatusUnauthorized)
		}
	}))
	for _, password := range []string{"swordfish", "guess", "swordfish", "swordfish"} {
		r := httptest.NewRequest(http.MethodPost, "/v1/login", nil)
		r.Header.Set("Password", password)
		h.ServeHTTP(httptest.NewRecorder(), r)
	}

	_ = logins.Close(context.Background()) // waits until all is settled
	checks := []algorithms.Check{{Policy: "login", Key: "ip=192.0.2.1", Limit: fivePerMinute}}
	fmt.Println(memory.Allow(context.Background(), checks), checks[0].Decision.Remaining)
	// Output: <nil> 4
}

func ExampleNewRouteTable() {
	memory := algorithms.NewMemory(nil)
	perClient := func(name string, l algorithms.Limit) ratelimit.Policy {
		return ratelimit.Policy{Name: name, Key: keyfunc.IP(nil), Limit: l}
	}
	routes := ratelimit.Must(ratelimit.NewRouteTable(memory, nil, ratelimit.Routes{
		"GET /v1/orders/{id}": {perClient("orders", algorithms.TokenBucket(100, time.Minute))},
		"/v1/search":          {perClient("search", algorithms.SlidingWindowCounter(30, time.Minute))},
		"/healthz":            {}, // unlimited
		"*":                   {perClient("rest", algorithms.TokenBucket(10, time.Minute))},
	}))

	r := chi.NewRouter()
	r.Use(routes.Handler) // in front of an http.ServeMux: routes.Around(mux)
	r.Get("/v1/orders/{id}", func(w http.ResponseWriter, _ *http.Request) {})
	r.Get("/healthz", func(w http.ResponseWriter, _ *http.Request) {})
	fmt.Println(routes.Verify(r)) // at start, when all routes are registered

	w := httptest.NewRecorder()
	r.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/v1/orders/42", nil))
	fmt.Println(w.Header().Get("RateLimit"))
	// Output:
	// middleware: route "/v1/search": the router has no such route
	// "orders";r=99;t=60
}

// A test of the service can want that no route is without a limit by mistake.
func ExampleRouteTable_Uncovered() {
	memory := algorithms.NewMemory(nil)
	routes := ratelimit.Must(ratelimit.NewRouteTable(memory, nil, ratelimit.Routes{
		"GET /v1/orders/{id}": {{Name: "orders", Key: keyfunc.IP(nil), Limit: algorithms.TokenBucket(100, time.Minute)}},
		"/healthz":            {}, // on purpose
	}))

	r := chi.NewRouter()
	r.Use(routes.Handler)
	for _, path := range []string{"/v1/orders/{id}", "/v1/invoices", "/healthz"} {
		r.Get(path, func(w http.ResponseWriter, _ *http.Request) {})
	}
	fmt.Println(routes.Uncovered(r))
	// Output: [GET /v1/invoices] <nil>
}
