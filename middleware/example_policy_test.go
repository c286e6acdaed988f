// Examples of policies and bans.

package ratelimit_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/keyfunc"
	"github.com/penstock-go/penstock/middleware"
)

// A client that is denied 20 times within a minute is banned for five minutes, then for ten, up to a day.
func ExampleBan() {
	memory := algorithms.NewMemory(nil)
	_, err := ratelimit.New(memory, nil, ratelimit.Policy{
		Name:  "api",
		Key:   keyfunc.IP(nil),
		Limit: algorithms.TokenBucket(60, time.Minute),
		Ban:   &ratelimit.Ban{Denials: 20, Within: time.Minute, For: 5 * time.Minute, Max: 24 * time.Hour},
	})
	fmt.Println(err)

	_, err = ratelimit.New(memory, nil, ratelimit.Policy{
		Name: "everybody", Key: keyfunc.Const("all"), Capacity: true, Limit: algorithms.TokenBucket(60, time.Minute),
		Ban: &ratelimit.Ban{Denials: 20, Within: time.Minute, For: time.Minute},
	})
	fmt.Println(err)
	// Output:
	// <nil>
	// ratelimit: policy "everybody": ban: Capacity and Ban cannot be combined: one client would lock out all
}

// Two streams at a time for each client, however long they run.
func ExamplePolicy_concurrent() {
	memory := algorithms.NewMemory(nil)
	streams := ratelimit.Must(ratelimit.New(memory, nil, ratelimit.Policy{
		Name:  "streams",
		Key:   keyfunc.IP(nil),
		Limit: algorithms.Concurrent(2, 30*time.Second), // and 30 s more if this process dies
	}))
	depth := 0
	var h http.Handler
	h = streams.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		depth++
		fmt.Println("running:", depth, w.Header().Get("RateLimit"))
		inner := httptest.NewRecorder()
		h.ServeHTTP(inner, httptest.NewRequest(http.MethodGet, "/v1/stream", nil)) // while this one runs
		if inner.Code != http.StatusOK {
			fmt.Println(inner.Code, inner.Header().Get("RateLimit-Policy"))
		}
		depth--
	}))
	h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/v1/stream", nil))
	// Output:
	// running: 1 "streams";r=1
	// running: 2 "streams";r=0
	// 429 "streams";q=2;qu="concurrent-requests"
}

// Capacity that all clients share: the status is 503, and no header reveals the load of others.
func ExamplePolicy_capacity() {
	memory := algorithms.NewMemory(nil)
	database := ratelimit.Must(ratelimit.New(memory, nil, ratelimit.Policy{
		Name:     "database",
		Key:      keyfunc.Const("all"),
		Limit:    algorithms.TokenBucket(1, time.Minute),
		Capacity: true,
	}))
	h := database.Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	for range 2 {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/v1/reports", nil))
		fmt.Println(w.Code, w.Header().Get("RateLimit") == "", w.Body.Len())
	}
	// Output:
	// 200 true 0
	// 503 true 135
}

// One policy may be for one route only. Around a ServeMux, Skip asks the mux for the route.
func ExamplePolicy_skip() {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /login", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) })
	limited := ratelimit.Must(ratelimit.New(algorithms.NewMemory(nil), nil,
		ratelimit.Policy{Name: "all", Limit: algorithms.SlidingWindowCounter(100, time.Minute)},
		ratelimit.Policy{
			Name: "login", Limit: algorithms.SlidingWindowLog(1, time.Minute),
			Skip: func(r *http.Request) bool { _, route := mux.Handler(r); return route != "POST /login" },
		},
	))
	for _, target := range []string{"/login", "/login", "/other"} {
		w := httptest.NewRecorder()
		limited.Handler(mux).ServeHTTP(w, httptest.NewRequest("POST", target, nil))
		fmt.Println(target, w.Code)
	}
	// Output:
	// /login 401
	// /login 429
	// /other 404
}
