// When requests ask the caller's limiter.

package client_test

import (
	"context"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/middleware/client"
)

// TestLimiterIsAskedInTime: only the first in the queue asks, at the instant of its unit, although responses arrive
// meanwhile. Neither a limiter that is 20 ms away nor a timer that is 60 ms late costs rate.
func TestLimiterIsAskedInTime(t *testing.T) {
	for _, away := range []struct{ before, after time.Duration }{{}, {10 * time.Millisecond, 10 * time.Millisecond}, {60 * time.Millisecond, 0}} {
		synctest.Test(t, func(t *testing.T) {
			var questions atomic.Int64
			memory := algorithms.NewMemory(nil)
			transport := newTransport(t, roundTripper(func(*http.Request) (*http.Response, error) {
				time.Sleep(35 * time.Millisecond)
				resp := response(http.StatusOK)
				resp.Body = http.NoBody
				return resp, nil
			}), &client.Options{
				Limiter: limiterFunc(func(ctx context.Context, checks []algorithms.Check) error {
					questions.Add(1)
					time.Sleep(away.before)
					err := memory.Allow(ctx, checks)
					time.Sleep(away.after)
					return err
				}),
				Limit: algorithms.TokenBucket(10, time.Second).WithBurst(2),
			})
			const n = 100
			failed, took := work(t, transport, n, 8)
			if ideal := (n - 2) * 100 * time.Millisecond; failed > 0 || took > ideal*102/100 || took < ideal {
				t.Errorf("%v away: %d failed, took %v of an ideal %v", away, failed, took, ideal)
			}
			if got := questions.Load(); got > 2*n {
				t.Errorf("%v away: asked %d times for %d requests", away, got, n)
			}
		})
	}
}
