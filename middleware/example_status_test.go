// Examples of the status page and of findings.

package middleware_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/keyfunc"
	ratelimit "github.com/penstock-go/penstock/middleware"
)

// A page shows operators what the limits do: to browsers as HTML, to programs as JSON.
func ExampleNewStatus() {
	limiter := algorithms.NewMemory(nil)
	status := ratelimit.NewStatus()
	limited := ratelimit.Must(ratelimit.New(limiter, &ratelimit.Options{Observer: status}, ratelimit.Policy{
		Name: "orders", Key: keyfunc.IP(nil), Limit: algorithms.TokenBucket(2, time.Minute),
	}))
	status.Watch(limited)
	if err := status.WatchLimiter("memory", limiter); err != nil {
		panic(err)
	}
	mux := http.NewServeMux()
	mux.Handle("GET /orders", limited.Handler(http.NotFoundHandler()))
	mux.Handle("/status", status) // behind your authentication

	for range 5 {
		mux.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/orders", nil))
	}
	w := httptest.NewRecorder()
	mux.ServeHTTP(w, httptest.NewRequest("GET", "/status?format=json", nil))
	var page struct {
		Policies []struct {
			Name, Limit string
			Outcomes    map[string]int
		}
	}
	fmt.Println(json.Unmarshal(w.Body.Bytes(), &page))
	fmt.Println(page.Policies)
	// Output:
	// <nil>
	// [{orders token-bucket 2/1m map[allowed:2 denied:3]}]
}

// What only shows while a service runs is found by its requests: here a cost that its limit can never admit.
func ExampleMiddleware_Findings() {
	limiter := algorithms.NewMemory(nil)
	o := &ratelimit.Options{Logger: slog.New(slog.DiscardHandler)} // it would be told, too
	limited := ratelimit.Must(ratelimit.New(limiter, o, ratelimit.Policy{
		Name: "export", Key: keyfunc.IP(nil), Limit: algorithms.TokenBucket(60, time.Minute).WithBurst(10),
		Cost: func(*http.Request) int64 { return 25 },
	}))
	limited.Handler(http.NotFoundHandler()).ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil))
	for _, f := range limited.Findings() {
		fmt.Printf("%s in %s: %s\n%s\n", f.Code, f.Policy, f.Sentence, f.Remedy)
	}
	// Output:
	// PS107 in export: A request cost more than the burst, and is denied for ever.
	// Clamp what the policy's Cost returns, or raise the burst.
}

// Several observers are told of everything, in order.
func ExampleObservers() {
	limiter := algorithms.NewMemory(nil)
	log := ratelimit.ObserverFunc(func(_ context.Context, e ratelimit.Event) { fmt.Println(e.Kind, e.Verdict.Allowed) })
	o := &ratelimit.Options{Observer: ratelimit.Observers(ratelimit.NewStatus(), log)}
	limited := ratelimit.Must(ratelimit.New(limiter, o, ratelimit.Policy{
		Name: "orders", Key: keyfunc.IP(nil), Limit: algorithms.TokenBucket(2, time.Minute),
	}))
	limited.Handler(http.NotFoundHandler()).ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil))
	// Output: decided true
}
