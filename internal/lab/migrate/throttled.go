package migrate

import (
	"net/http"
	"time"

	"github.com/throttled/throttled/v2"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/headers"
	"github.com/penstock-go/penstock/keyfunc"
	ratelimit "github.com/penstock-go/penstock/middleware"
)

func throttledBefore(next http.Handler, store throttled.GCRAStoreCtx) (http.Handler, error) { // e.g. goredisstore.NewCtx(client, "throttled:")
	quota := throttled.RateQuota{MaxRate: throttled.PerMin(20), MaxBurst: 5}
	rateLimiter, err := throttled.NewGCRARateLimiterCtx(store, quota)
	if err != nil {
		return nil, err
	}
	httpRateLimiter := throttled.HTTPRateLimiterCtx{RateLimiter: rateLimiter, VaryBy: &throttled.VaryBy{Path: true}}
	return httpRateLimiter.RateLimit(next), nil
}

func throttledAfter(next http.Handler, l algorithms.Limiter) http.Handler {
	o := &ratelimit.Options{Headers: headers.XRateLimit} // the names of its fields
	return ratelimit.Must(ratelimit.New(l, o, ratelimit.Policy{
		Name: "path", Key: keyfunc.Route(), Limit: algorithms.TokenBucket(20, time.Minute).WithBurst(6),
	})).Handler(next)
}
