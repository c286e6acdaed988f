// The usual program: plans by API key on chi, with Redis, metrics and graceful shutdown.

package prommetrics_test

import (
	"context"
	"errors"
	"log"
	"net/http"
	"net/netip"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/redis/go-redis/v9"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/algorithms/shared"
	"github.com/penstock-go/penstock/keyfunc"
	"github.com/penstock-go/penstock/middleware"
	"github.com/penstock-go/penstock/middleware/overrides"
	"github.com/penstock-go/penstock/middleware/prommetrics"
)

// Plans by API key. The instances count together in Redis, and each counts alone while Redis is away. Overrides change
// limits while it runs, and Prometheus scrapes /metrics. A signal ends the program gracefully.
func Example_plans() {
	rdb := redis.NewClient(&redis.Options{Addr: "127.0.0.1:6379"}) // of github.com/redis/go-redis/v9
	limiter := ratelimit.Must(shared.New(rdb, nil))
	if err := limiter.Ready(context.Background()); errors.Is(err, shared.ErrMisconfigured) {
		log.Fatal(err) // an outage is no reason to stop
	}
	table := ratelimit.Must(overrides.NewRedis(rdb, limiter, nil))
	opts := &ratelimit.Options{
		Overrides: table,
		ClientIP:  keyfunc.IP(&keyfunc.IPOptions{Trusted: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}}),
		Observers: []ratelimit.Observer{ratelimit.Must(prommetrics.New(prometheus.DefaultRegisterer, nil))},
	}
	charges := ratelimit.Must(ratelimit.New(limiter, opts,
		ratelimit.Policy{
			Name: "charges", Key: keyfunc.APIKey("X-API-Key", findAccount), Limit: algorithms.TokenBucket(100, time.Minute),
			Tiers: map[string]algorithms.Limit{"enterprise": algorithms.TokenBucket(5_000, time.Minute)},
		},
		ratelimit.Policy{
			Name: "charges-capacity", Key: keyfunc.Const("all"), Capacity: true, Limit: algorithms.TokenBucket(10_000, time.Second),
		},
	))
	r := chi.NewRouter()
	r.Handle("/metrics", promhttp.Handler())
	r.With(charges.Handler).Post("/v1/charges", createCharge)

	server := &http.Server{Addr: ":8080", Handler: r, ReadHeaderTimeout: 5 * time.Second}
	server.RegisterOnShutdown(charges.Release)
	interrupted, _ := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	go func() {
		if err := server.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
			log.Fatal(err)
		}
	}()
	<-interrupted.Done()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	log.Println(errors.Join(server.Shutdown(ctx), charges.Close(ctx), limiter.Close(), table.Close(), rdb.Close()))
}

// findAccount would ask a database, behind a bounded cache.
func findAccount(_ context.Context, key string) (keyfunc.Identity, error) {
	if key != "sk_live_1" {
		return keyfunc.Identity{}, keyfunc.ErrUnknown
	}
	return keyfunc.Identity{ID: "acct-1", Tier: "enterprise"}, nil
}

func createCharge(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusCreated) }
