package main

import (
	"net/http"

	"github.com/go-redis/redis_rate/v10"
	"github.com/redis/go-redis/v9"
)

// redisRate is the example of its README in a handler. The example panics after an error; a handler answers 500.
func redisRate(addr string, next http.Handler) (http.Handler, error) {
	limiter := redis_rate.NewLimiter(redis.NewClient(&redis.Options{Addr: addr}))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		res, err := limiter.Allow(r.Context(), "project:123", redis_rate.PerSecond(perSecond))
		switch {
		case err != nil:
			http.Error(w, http.StatusText(http.StatusInternalServerError), http.StatusInternalServerError)
		case res.Allowed == 0:
			http.Error(w, http.StatusText(http.StatusTooManyRequests), http.StatusTooManyRequests)
		default:
			next.ServeHTTP(w, r)
		}
	}), nil
}
