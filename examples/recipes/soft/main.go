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

// limits returns the plan and the credits behind it: a request is charged to the plan, or, if that is used up, to credits.
// Console.Grant adds credits that a customer has bought.
func limits(limiter algorithms.Limiter, find func(context.Context, string) (keyfunc.Identity, error)) *ratelimit.Middleware {
	account := keyfunc.APIKey("X-API-Key", find)
	return ratelimit.Must(ratelimit.New(limiter, nil,
		ratelimit.Policy{Name: "plan", Key: account, Limit: algorithms.TokenBucket(60, time.Minute)},
		ratelimit.Policy{Name: "credits", Key: account, Limit: algorithms.PerMonth(1_000, nil), After: "plan"}))
}

func serve(w http.ResponseWriter, r *http.Request) {
	v, _ := ratelimit.FromContext(r.Context())
	if plan, asked := v.Policy("plan"); asked && plan.Outcome == ratelimit.OutcomeSpared {
		w.Header().Set("X-Above-Plan", "true") // or take a cheaper model
	}
}

func main() {
	m := limits(algorithms.NewMemory(nil), func(_ context.Context, key string) (keyfunc.Identity, error) {
		return keyfunc.Identity{ID: "acme"}, nil // ask your database, behind a cache
	})
	log.Fatal(http.ListenAndServe("127.0.0.1:8080", m.Handler(http.HandlerFunc(serve))))
}
