package migrate

//lint:file-ignore SA1019 programs that come from httprate have its older functions

import (
	"cmp"
	"net/http"
	"time"

	"github.com/go-chi/chi/v5/middleware"
	"github.com/go-chi/httprate"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/headers"
	"github.com/penstock-go/penstock/keyfunc"
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

func httprateLoginBefore(next http.Handler, tooMany http.HandlerFunc) http.Handler {
	byAccount := func(r *http.Request) (string, error) { return r.Header.Get("X-Account"), nil }
	return httprate.Limit(3, time.Minute, httprate.WithKeyFuncs(byAccount, httprate.KeyByEndpoint), httprate.WithLimitHandler(tooMany))(next)
}

func httprateLoginAfter(next http.Handler, limiter algorithms.Limiter, tooMany http.HandlerFunc) http.Handler {
	account := keyfunc.Custom("account", func(r *http.Request) (string, error) { return cmp.Or(r.Header.Get("X-Account"), "none"), nil })
	path := keyfunc.Custom("path", func(r *http.Request) (string, error) { return r.URL.Path, nil }) // better: keyfunc.Route()
	o := &ratelimit.Options{Headers: headers.XRateLimit, Refused: func(w http.ResponseWriter, r *http.Request, v ratelimit.Verdict) {
		if v.Status == http.StatusTooManyRequests {
			tooMany(w, r)
		} else {
			ratelimit.Refuse(w, r, v) // httprate calls a WithLimitHandler over the limit only
		}
	}}
	return ratelimit.Must(ratelimit.New(limiter, o, ratelimit.Policy{
		Name: "login", Key: keyfunc.Join(account, path), Limit: algorithms.SlidingWindowCounter(3, time.Minute), Fail: algorithms.FailClosed,
	})).Handler(next)
}
