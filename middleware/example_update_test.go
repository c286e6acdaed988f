// Examples of updates.

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

// Policies from a configuration are replaced when it changes. Counts stay.
func ExampleMiddleware_Update() {
	limiter := algorithms.NewMemory(nil)
	policy := ratelimit.Policy{Name: "reports", Key: keyfunc.IP(nil), Limit: algorithms.TokenBucket(2, time.Minute)}
	limited := ratelimit.Must(ratelimit.New(limiter, nil, policy))
	h := limited.Handler(http.NotFoundHandler())
	ask := func() {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
		fmt.Println(w.Code, w.Header().Get("RateLimit-Remaining"))
	}

	ask()
	policy.Limit = algorithms.TokenBucket(0, time.Minute)
	fmt.Println(limited.Update(policy) != nil)
	ask()
	policy.Limit = algorithms.TokenBucket(10, time.Minute)
	fmt.Println(limited.Update(policy))
	ask()
	// Output:
	// 404 1
	// true
	// 404 0
	// <nil>
	// 404 7
}
