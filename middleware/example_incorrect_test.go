// Examples of common misuse, each with its correction.

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

// INCORRECT: cors stands inside of the limiter. It never sees a denial, which therefore lacks
// Access-Control-Allow-Origin: browsers hide it, Retry-After included, and scripts see a network error.
//
// Wrap the other way around: cors(limited.Handler(api)).
func ExampleMiddleware_Handler_incorrect() {
	limiter := algorithms.NewMemory(nil)
	limited := ratelimit.Must(ratelimit.New(limiter, nil, ratelimit.Policy{
		Name: "api", Key: keyfunc.IP(nil), Limit: algorithms.TokenBucket(1, time.Minute),
	}))
	cors := func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Access-Control-Allow-Origin", "https://app.example.com")
			next.ServeHTTP(w, r)
		})
	}
	api := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})

	incorrect := limited.Handler(cors(api))
	for range 2 {
		w := httptest.NewRecorder()
		incorrect.ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
		fmt.Printf("%d %q\n", w.Code, w.Header().Get("Access-Control-Allow-Origin"))
	}
	// Output:
	// 200 "https://app.example.com"
	// 429 ""
}

// INCORRECT: the policy stands around the whole router and again around a handler in it, so that handler's requests are
// charged twice, and its clients get half of the limit.
//
// Mount a policy once, or give the inner one a name and a limit of its own.
func ExampleMiddleware_incorrect() {
	limiter := algorithms.NewMemory(nil)
	limited := ratelimit.Must(ratelimit.New(limiter, nil, ratelimit.Policy{
		Name: "api", Key: keyfunc.IP(nil), Limit: algorithms.TokenBucket(4, time.Hour),
	}))

	mux := http.NewServeMux()
	mux.Handle("GET /users", limited.Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})))
	incorrect := limited.Handler(mux)
	for range 3 {
		w := httptest.NewRecorder()
		incorrect.ServeHTTP(w, httptest.NewRequest("GET", "/users", nil))
		fmt.Println(w.Code, w.Header().Get("RateLimit-Remaining"))
	}
	// Output:
	// 200 2
	// 200 0
	// 429 0
}
