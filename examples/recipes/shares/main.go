// Command shares gives each tenant its share of a capacity when that is full.
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

// limits returns a capacity of 100 requests per second. A tenant with the plan "gold" has twice the share of others.
func limits(limiter algorithms.Limiter, find func(context.Context, string) (keyfunc.Identity, error)) *ratelimit.Middleware {
	return ratelimit.Must(ratelimit.New(limiter, nil, ratelimit.Policy{
		Name: "capacity", Key: keyfunc.Const("all"), Capacity: true, Limit: algorithms.TokenBucket(100, time.Second),
		ShareBy: keyfunc.APIKey("X-API-Key", find), Weights: map[string]int64{"gold": 2},
	}))
}

func serve(http.ResponseWriter, *http.Request) {}

func main() {
	m := limits(algorithms.NewMemory(nil), func(_ context.Context, key string) (keyfunc.Identity, error) {
		return keyfunc.Identity{ID: "acme", Tier: "gold"}, nil // ask your database, behind a cache
	})
	log.Fatal(http.ListenAndServe("127.0.0.1:8080", m.Handler(http.HandlerFunc(serve))))
}
