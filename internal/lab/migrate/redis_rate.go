package migrate

import (
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/go-redis/redis_rate/v10"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/headers"
	"github.com/penstock-go/penstock/keyfunc"
	ratelimit "github.com/penstock-go/penstock/middleware"
)

func redisRateBefore(next http.Handler, limiter *redis_rate.Limiter) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		res, err := limiter.Allow(r.Context(), "project:"+r.Header.Get("X-Project"), redis_rate.PerMinute(10))
		if err != nil {
			panic(err)
		}
		w.Header().Set("RateLimit-Remaining", strconv.Itoa(res.Remaining))
		if res.Allowed == 0 {
			w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(res.RetryAfter.Seconds()))))
			http.Error(w, http.StatusText(http.StatusTooManyRequests), http.StatusTooManyRequests)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func redisRateAfter(next http.Handler, limiter algorithms.Limiter) http.Handler {
	o := &ratelimit.Options{Headers: headers.SeparateFields}
	return ratelimit.Must(ratelimit.New(limiter, o, ratelimit.Policy{
		Name: "project", Key: keyfunc.Header("X-Project"), Limit: algorithms.TokenBucket(10, time.Minute),
	})).Handler(next)
}
