// Command plans gives each customer the limits of its plan.
package main

import (
	"context"
	"errors"
	"log"
	"net/http"
	"os/signal"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/redis/go-redis/v9"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/algorithms/shared"
	"github.com/penstock-go/penstock/keyfunc"
	ratelimit "github.com/penstock-go/penstock/middleware"
	"github.com/penstock-go/penstock/middleware/prommetrics"
)

// A lookup returns the account of an API key.
type lookup func(ctx context.Context, key string) (keyfunc.Identity, error)

// limits returns three limits of one decision: if one denies, none is charged.
func limits(limiter algorithms.Limiter, o *ratelimit.Options, database lookup) (*ratelimit.Middleware, error) {
	account := keyfunc.APIKey("X-API-Key", keyfunc.Cached(database, 10_000, time.Minute))
	return ratelimit.New(limiter, o,
		ratelimit.Policy{
			Name: "minute", Key: account, Limit: algorithms.TokenBucket(60, time.Minute),
			Tiers: map[string]algorithms.Limit{"enterprise": algorithms.TokenBucket(5_000, time.Minute)},
		},
		ratelimit.Policy{
			Name: "month", Key: account, Limit: algorithms.PerMonth(10_000, nil),
			Tiers: map[string]algorithms.Limit{"enterprise": algorithms.PerMonth(50_000_000, nil)},
		},
		ratelimit.Policy{ // the capacity that all customers share
			Name: "capacity", Key: keyfunc.Const("all"), Capacity: true, Limit: algorithms.TokenBucket(10_000, time.Second),
		})
}

// findAccount stands for a query of your database. The error means that the key does not exist.
func findAccount(_ context.Context, key string) (keyfunc.Identity, error) {
	switch key {
	case "sk_live_1":
		return keyfunc.Identity{ID: "acme", Tier: "enterprise"}, nil
	case "sk_live_2":
		return keyfunc.Identity{ID: "globex"}, nil // no tier: each policy's Limit
	}
	return keyfunc.Identity{}, keyfunc.ErrUnknown
}

func main() {
	rdb := redis.NewClient(&redis.Options{Addr: "127.0.0.1:6379"})
	limiter := ratelimit.Must(shared.New(rdb, nil))
	if err := limiter.Ready(context.Background()); errors.Is(err, shared.ErrMisconfigured) {
		log.Fatal(err) // an outage of Redis is no reason to stop
	}
	metrics := ratelimit.Must(prommetrics.New(prometheus.DefaultRegisterer, nil))
	limited := ratelimit.Must(limits(limiter, &ratelimit.Options{Observers: []ratelimit.Observer{metrics}}, findAccount))

	mux := http.NewServeMux()
	mux.Handle("POST /v1/charges", limited.Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusCreated) })))
	mux.Handle("GET /metrics", promhttp.Handler())
	server := &http.Server{Addr: "127.0.0.1:8080", Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	server.RegisterOnShutdown(limited.Release)
	go func() { log.Println(server.ListenAndServe()) }()

	signalled, _ := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	<-signalled.Done()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	log.Println(errors.Join(server.Shutdown(ctx), limited.Close(ctx), limiter.Close(), rdb.Close()))
}
