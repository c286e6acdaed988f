package main

import (
	"net/http"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/ulule/limiter/v3"
	"github.com/ulule/limiter/v3/drivers/middleware/stdlib"
	ululeredis "github.com/ulule/limiter/v3/drivers/store/redis"
)

// ulule is the program of its README, with its middleware for net/http. After an error its handler panics, and net/http
// closes the connection.
func ulule(addr string, next http.Handler) (http.Handler, error) {
	store, err := ululeredis.NewStore(redis.NewClient(&redis.Options{Addr: addr}))
	if err != nil {
		return nil, err
	}
	instance := limiter.New(store, limiter.Rate{Period: time.Second, Limit: perSecond})
	return stdlib.NewMiddleware(instance).Handler(next), nil
}
