// Command kubernetes runs in a pod. It serves when it counts together with the other pods, and ends without losing a request.
package main

import (
	"context"
	"errors"
	"log"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/signal"
	"strconv"
	"sync/atomic"
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

// terminationGracePeriodSeconds covers both, and the seconds of Limiter.Close.
const (
	drainTime   = 10 * time.Second // until no proxy sends requests to this pod any more
	requestTime = 30 * time.Second // of the longest request, and its settlement
)

// A service is what a pod runs.
type service struct {
	rdb     *redis.Client
	limiter *shared.Limiter
	limited *ratelimit.Middleware
	drain   func()
}

// newService fails if Redis is misconfigured, so that a rollout stops. If Redis is down, the pod serves without it.
func newService(ctx context.Context, rdb *redis.Client, instances int, observers ...ratelimit.Observer) (*service, error) {
	limiter, err := shared.New(rdb, &shared.Options{Instances: instances})
	if err != nil {
		return nil, err
	}
	if err := limiter.Ready(ctx); errors.Is(err, shared.ErrMisconfigured) {
		return nil, errors.Join(err, limiter.Close())
	} else if err != nil {
		log.Print(err)
	}
	ingress := keyfunc.IP(&keyfunc.IPOptions{Trusted: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}}) // the pods' network
	limited, err := ratelimit.New(limiter, &ratelimit.Options{ClientIP: ingress, Observers: observers}, ratelimit.Policy{
		Name: "api", Limit: algorithms.TokenBucket(600, time.Minute), ChargeIf: func(status int) bool { return status < 500 },
	})
	return &service{rdb: rdb, limiter: limiter, limited: limited, drain: func() { time.Sleep(drainTime) }}, err
}

// serve answers requests until ctx ends. Then it ends in the order that loses no request, no charge and no refund.
func (s *service) serve(ctx context.Context, listener net.Listener, work http.Handler) error {
	var draining atomic.Bool
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(http.ResponseWriter, *http.Request) {}) // says nothing about Redis
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if draining.Load() {
			http.Error(w, "draining", http.StatusServiceUnavailable)
		}
	})
	mux.Handle("GET /metrics", promhttp.Handler())
	mux.Handle("POST /v1/orders", s.limited.Handler(work))
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	server.RegisterOnShutdown(s.limited.Release)
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	draining.Store(true) // new requests still come, and are served
	s.drain()
	ending, cancel := context.WithTimeout(context.Background(), requestTime)
	defer cancel()
	return errors.Join(server.Shutdown(ending), s.limited.Close(ending), s.limiter.Close(), s.rdb.Close())
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	o := ratelimit.Must(redis.ParseURL(os.Getenv("REDIS_URL")))
	instances := ratelimit.Must(strconv.Atoi(os.Getenv("INSTANCES")))
	s := ratelimit.Must(newService(ctx, redis.NewClient(o), instances, ratelimit.Must(prommetrics.New(prometheus.DefaultRegisterer, nil))))
	listener := ratelimit.Must(net.Listen("tcp", ":8080"))
	err := s.serve(ctx, listener, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusCreated) }))
	if err != nil {
		log.Fatal(err)
	}
}
