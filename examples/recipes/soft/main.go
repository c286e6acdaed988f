// Command soft serves requests above the plan, marks them, and charges them to credits.
package main

import (
	"context"
	"log"
	"net/http"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/keyfunc"
	ratelimit "github.com/penstock-go/penstock/middleware"
)

// limits returns the plan and, inside, the credits. The plan is a Shadow: it counts, and denies no request. Credits are
// a limit that never refills by itself within a month; Console.Grant adds credits that a customer has bought.
func limits(limiter algorithms.Limiter, find func(context.Context, string) (keyfunc.Identity, error)) (plan, credits *ratelimit.Middleware) {
	account := keyfunc.APIKey("X-API-Key", find)
	plan = ratelimit.Must(ratelimit.New(limiter, nil,
		ratelimit.Policy{Name: "safety", Key: account, Limit: algorithms.TokenBucket(600, time.Minute)},
		ratelimit.Policy{Name: "plan", Key: account, Limit: algorithms.TokenBucket(60, time.Minute), Shadow: true}))
	credits = ratelimit.Must(ratelimit.New(limiter, nil, ratelimit.Policy{
		Name: "credits", Key: account, Limit: algorithms.PerMonth(1_000, nil),
		Skip: func(r *http.Request) bool { return !above(r) },
	}))
	return plan, credits
}

// above reports whether the request is above its plan.
func above(r *http.Request) bool {
	v, _ := ratelimit.FromContext(r.Context())
	p, asked := v.Policy("plan")
	return asked && !p.Decision.Allowed
}

func serve(w http.ResponseWriter, r *http.Request) {
	v, _ := ratelimit.FromContext(r.Context())
	if _, charged := v.Policy("credits"); charged {
		w.Header().Set("X-Above-Plan", "true") // or take a cheaper model
	}
}

func main() {
	plan, credits := limits(algorithms.NewMemory(nil), func(_ context.Context, key string) (keyfunc.Identity, error) {
		return keyfunc.Identity{ID: "acme"}, nil // ask your database, behind a cache
	})
	log.Fatal(http.ListenAndServe("127.0.0.1:8080", plan.Handler(credits.Handler(http.HandlerFunc(serve)))))
}
