package migrate

import (
	"net/http"
	"time"

	"github.com/ulule/limiter/v3"
	"github.com/ulule/limiter/v3/drivers/middleware/stdlib"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/headers"
	ratelimit "github.com/penstock-go/penstock/middleware"
)

func ululeBefore(next http.Handler, store limiter.Store) (http.Handler, error) { // memory.NewStore(), or redis.NewStore(client)
	rate, err := limiter.NewRateFromFormatted("1000-H")
	if err != nil {
		return nil, err
	}
	return stdlib.NewMiddleware(limiter.New(store, rate)).Handler(next), nil
}

func ululeAfter(next http.Handler, l algorithms.Limiter) http.Handler {
	o := &ratelimit.Options{Headers: headers.XRateLimit} // the names of its fields
	return ratelimit.Must(ratelimit.New(l, o, ratelimit.Policy{
		Name: "api", Limit: algorithms.FixedWindow(1000, time.Hour),
	})).Handler(next)
}
