package main

import (
	"net/http"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/algorithms/shared"
	ratelimit "github.com/penstock-go/penstock/middleware"
)

// penstock is README's line for several instances.
func penstock(addr string, next http.Handler) (http.Handler, error) {
	limiter := ratelimit.Must(shared.New(redis.NewClient(&redis.Options{Addr: addr}), nil))
	return ratelimit.Must(ratelimit.New(limiter, nil, ratelimit.Policy{
		Name: "api", Limit: algorithms.TokenBucket(perSecond, time.Second),
	})).Handler(next), nil
}
