// Examples of updates, and of what is in force.

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

// A fixed table of overrides, by key. A service uses package overrides, whose tables change while it runs.
type fixed map[string]ratelimit.Override

func (f fixed) Find(_, key string) (ratelimit.Override, bool) {
	o, found := f[key]
	return o, found
}

// An operator asks what holds for a client of the plan gold.
func ExampleMiddleware_InForce() {
	table := fixed{}
	limited := ratelimit.Must(ratelimit.New(algorithms.NewMemory(nil), &ratelimit.Options{Overrides: table}, ratelimit.Policy{
		Name: "api", Key: keyfunc.User(nobodyYet), Limit: algorithms.TokenBucket(60, time.Minute),
		Tiers: map[string]algorithms.Limit{"gold": algorithms.TokenBucket(600, time.Minute)},
	}))
	show := func() {
		f, _ := limited.InForce("api", "usr=42", "gold", algorithms.Limit{})
		fmt.Printf("%v, from %s, mode %q\n", f.Limit, f.From, f.Mode)
	}
	show()
	table["usr=42"] = ratelimit.Override{Limit: algorithms.TokenBucket(5_000, time.Minute), Mode: ratelimit.ModeShadow}
	show()
	// Output:
	// token-bucket 600/1m, from tier, mode ""
	// token-bucket 5000/1m, from override, mode "shadow"
}

func nobodyYet(context.Context) (keyfunc.Identity, bool) { return keyfunc.Identity{}, false }
