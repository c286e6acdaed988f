package migrate

import (
	"net/http"
	"time"

	"github.com/go-chi/chi/v5/middleware"
	"github.com/go-chi/httprate"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/headers"
	ratelimit "github.com/penstock-go/penstock/middleware"
)

func httprateBefore(next http.Handler, o ...httprate.Option) http.Handler {
	limit := httprate.LimitBy(100, time.Minute, func(r *http.Request) (string, error) {
		return httprate.CanonicalizeIP(middleware.GetClientIP(r.Context())), nil
	}, o...) // in Redis: httprateredis.WithRedisLimitCounter(&httprateredis.Config{Host: host, Port: port})
	return middleware.ClientIPFromRemoteAddr(limit(next))
}

func httprateAfter(next http.Handler, limiter algorithms.Limiter) http.Handler {
	o := &ratelimit.Options{Headers: headers.XRateLimit} // the names of httprate's fields
	return ratelimit.Must(ratelimit.New(limiter, o, ratelimit.Policy{
		Name: "api", Limit: algorithms.SlidingWindowCounter(100, time.Minute),
	})).Handler(next)
}
