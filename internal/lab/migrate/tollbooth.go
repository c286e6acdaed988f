package migrate

import (
	"net/http"
	"net/netip"
	"time"

	"github.com/didip/tollbooth/v8"
	"github.com/didip/tollbooth/v8/limiter"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/headers"
	"github.com/penstock-go/penstock/keyfunc"
	ratelimit "github.com/penstock-go/penstock/middleware"
)

func tollboothBefore(next http.Handler) http.Handler {
	lmt := tollbooth.NewLimiter(1, nil) // per second
	lmt.SetIPLookup(limiter.IPLookup{Name: "X-Real-IP", IndexFromRight: 0})
	return tollbooth.LimitHandler(lmt, next)
}

func tollboothAfter(next http.Handler, l algorithms.Limiter) http.Handler {
	proxy := &keyfunc.IPOptions{Trusted: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}, Header: "X-Real-IP"}
	o := &ratelimit.Options{Headers: headers.SeparateFields}
	return ratelimit.Must(ratelimit.New(l, o, ratelimit.Policy{
		Name: "api", Key: keyfunc.Join(keyfunc.IP(proxy), keyfunc.Route()), Limit: algorithms.TokenBucket(1, time.Second),
	})).Handler(next)
}
