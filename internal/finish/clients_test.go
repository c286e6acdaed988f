// The clients that are compared.

package finish

import (
	"context"
	"net/http"
	"time"

	"github.com/failsafe-go/failsafe-go/failsafehttp"
	"github.com/hashicorp/go-retryablehttp"
	"golang.org/x/time/rate"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/middleware/client"
)

// A contestant is a client. start returns a function that sends a request through base, and returns the last status; 0 is
// an error.
type contestant struct {
	name  string
	start func(base http.RoundTripper) func(ctx context.Context, url string) int
}

// Columns of the table.
const (
	byDefault     = "penstock"
	paced         = "penstock, Pace"
	limited       = "penstock, Limiter, burst 2"
	limitedTight  = "penstock, Limiter, burst 1"
	retryable     = "go-retryablehttp"
	failsafe      = "failsafe-go"
	timeRate      = "x/time/rate, burst 2"
	timeRateTight = "x/time/rate, burst 1"
)

// statuses has GitHub's 403.
var statuses = []int{http.StatusForbidden, http.StatusTooManyRequests, http.StatusServiceUnavailable}

var contestants = []contestant{
	{byDefault, ours(client.Options{Statuses: statuses})},
	{paced, ours(client.Options{Statuses: statuses, Pace: true})},
	{limited, limiterOf(2)},
	{limitedTight, limiterOf(1)},
	{retryable, func(base http.RoundTripper) func(context.Context, string) int {
		c := retryablehttp.NewClient()
		c.HTTPClient, c.Logger = &http.Client{Transport: base}, nil
		return through(c.StandardClient())
	}},
	{failsafe, func(base http.RoundTripper) func(context.Context, string) int {
		return through(&http.Client{Transport: failsafehttp.NewRoundTripper(base, failsafehttp.NewRetryPolicyBuilder().Build())})
	}},
	{timeRate, timeRateOf(2)},
	{timeRateTight, timeRateOf(1)},
}

// limiterOf is our Limiter of 10 per second with a burst.
func limiterOf(burst int64) func(base http.RoundTripper) func(context.Context, string) int {
	return func(base http.RoundTripper) func(context.Context, string) int {
		return ours(client.Options{
			Statuses: statuses, Limiter: algorithms.NewMemory(nil), Limit: algorithms.TokenBucket(10, time.Second).WithBurst(burst),
		})(base)
	}
}

// timeRateOf is the same with x/time/rate.
func timeRateOf(burst int) func(base http.RoundTripper) func(context.Context, string) int {
	return func(base http.RoundTripper) func(context.Context, string) int {
		limiter, send := rate.NewLimiter(10, burst), through(&http.Client{Transport: base})
		return func(ctx context.Context, url string) int {
			if limiter.Wait(ctx) != nil {
				return 0
			}
			return send(ctx, url)
		}
	}
}

func ours(o client.Options) func(base http.RoundTripper) func(context.Context, string) int {
	return func(base http.RoundTripper) func(context.Context, string) int {
		transport, err := client.NewTransport(base, &o)
		if err != nil {
			panic(err)
		}
		return through(&http.Client{Transport: transport})
	}
}

func through(c *http.Client) func(ctx context.Context, url string) int {
	return func(ctx context.Context, url string) int {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			panic(err)
		}
		resp, err := c.Do(req)
		if err != nil {
			return 0
		}
		_ = resp.Body.Close() // the status says all
		return resp.StatusCode
	}
}
