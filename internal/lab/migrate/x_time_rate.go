package migrate

import (
	"context"
	"net/http"
	"time"

	"golang.org/x/time/rate"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/keyfunc"
	ratelimit "github.com/penstock-go/penstock/middleware"
)

func xTimeRateBefore(next http.Handler) http.Handler {
	limiter := rate.NewLimiter(rate.Every(100*time.Millisecond), 20)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !limiter.Allow() {
			http.Error(w, http.StatusText(http.StatusTooManyRequests), http.StatusTooManyRequests)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func xTimeRateAfter(next http.Handler) http.Handler {
	return ratelimit.Must(ratelimit.New(algorithms.NewMemory(nil), nil, ratelimit.Policy{
		Name: "all", Key: keyfunc.Const("all"), Capacity: true, Limit: algorithms.TokenBucket(10, time.Second).WithBurst(20),
	})).Handler(next)
}

func xTimeRateWaitBefore(ctx context.Context, limiter *rate.Limiter, send func()) error {
	if err := limiter.Wait(ctx); err != nil {
		return err
	}
	send()
	return nil
}

func xTimeRateWaitAfter(ctx context.Context, limiter algorithms.Limiter, send func()) error {
	limit := algorithms.TokenBucket(10, time.Second).WithBurst(20)
	if err := algorithms.Wait(ctx, limiter, "host=api.example.com", limit); err != nil {
		return err
	}
	send()
	return nil
}
