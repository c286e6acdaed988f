// Examples of shadow policies, candidates and exemptions.

package ratelimit_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/keyfunc"
	"github.com/penstock-go/penstock/middleware"
)

// A new limit is watched first: the shadow reports the requests that it would deny, and no client notices.
func ExamplePolicy_shadow() {
	limiter := algorithms.NewMemory(nil)
	tell := ratelimit.ObserverFunc(func(_ context.Context, e ratelimit.Event) {
		if e.Kind == ratelimit.Decided {
			fmt.Println(e.Verdict.Policies[0].Name, e.Verdict.Policies[0].Outcome.String())
		}
	})
	watched := ratelimit.Must(ratelimit.New(limiter, &ratelimit.Options{Observers: []ratelimit.Observer{tell}}, ratelimit.Policy{
		Name: "exports", Key: keyfunc.IP(nil), Limit: algorithms.TokenBucket(1, time.Hour), Shadow: true,
	}))
	h := watched.Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	for range 2 {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
		fmt.Println(w.Code, w.Header())
	}
	// Output:
	// exports allowed
	// 200 map[]
	// exports shadow_denied
	// 200 map[]
}

// A new limit is tried beside the live one, and only the live one decides.
func ExamplePolicy_candidate() {
	limiter := algorithms.NewMemory(nil)
	tell := ratelimit.ObserverFunc(func(_ context.Context, e ratelimit.Event) {
		if e.Kind == ratelimit.Diverged {
			fmt.Println(e.Policy, "live:", e.Live.Allowed, "candidate:", e.Candidate.Allowed)
		}
	})
	stricter := algorithms.SlidingWindowLog(1, time.Minute)
	limited := ratelimit.Must(ratelimit.New(limiter, &ratelimit.Options{Observers: []ratelimit.Observer{tell}}, ratelimit.Policy{
		Name: "reports", Key: keyfunc.IP(nil), Limit: algorithms.TokenBucket(2, time.Minute), Candidate: &stricter,
	}))
	h := limited.Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	for range 3 {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
		fmt.Println(w.Code)
	}
	// Output:
	// 200
	// reports live: true candidate: false
	// 200
	// 429
}

// Health checks pass, however many there are.
func ExampleOptions_exempt() {
	limiter := algorithms.NewMemory(nil)
	limited := ratelimit.Must(ratelimit.New(limiter,
		&ratelimit.Options{Exempt: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}},
		ratelimit.Policy{Name: "all", Key: keyfunc.Const("all"), Limit: algorithms.Nobody()}))
	for _, peer := range []string{"192.0.2.7:1234", "198.51.100.7:1234"} {
		r := httptest.NewRequest("GET", "/healthz", nil)
		r.RemoteAddr = peer
		v, _ := limited.Check(r)
		fmt.Println(v.Allowed, v.Exempt)
	}
	// Output:
	// true true
	// false false
}
