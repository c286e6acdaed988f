// Examples of costs that are known late.

package ratelimit_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/keyfunc"
	"github.com/penstock-go/penstock/middleware"
)

// Tokens of a language model: a request reserves the tokens that most requests
// need, and pays for the tokens that it used.
func ExampleSettle() {
	memory := algorithms.NewMemory(nil)
	daily := algorithms.TokenBucket(10_000, 24*time.Hour)
	tokens := ratelimit.Must(ratelimit.New(memory, nil, ratelimit.Policy{
		Name:  "completions",
		Key:   keyfunc.IP(nil),
		Limit: daily,
		Cost:  func(r *http.Request) int64 { return 4_000 }, // or what a header asks for, within bounds
	}))
	h := tokens.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for used := int64(500); used <= 1_500; used += 500 { // while it streams: the total so far
			if err := ratelimit.Settle(r.Context(), used); err != nil {
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
