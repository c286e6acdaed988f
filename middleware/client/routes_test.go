// What a denial of some requests does to the others.

package client_test

import (
	"context"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/penstock-go/penstock/middleware/client"
)

// TestBareDenialOfARoute: a 429 without a wait that only some requests meet delays the others, and does not stop them.
func TestBareDenialOfARoute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		transport := newTransport(t, roundTripper(func(req *http.Request) (*http.Response, error) {
			resp := response(http.StatusOK)
			if req.URL.Path == "/limited" {
				resp = response(http.StatusTooManyRequests)
			}
			resp.Body = http.NoBody
			return resp, nil
		}), nil)
		ctx, cancel := context.WithCancel(context.Background())
		var limited, others sync.WaitGroup
		for range 4 {
			limited.Go(func() {
				req := get(t, ctx)
				req.URL.Path = "/limited"
				_, _ = transport.RoundTrip(req) // the context ends
			})
		}
		begun := time.Now()
		for range 4 {
			others.Go(func() {
				for range 20 {
					send(t, transport, get(t, ctx))
				}
			})
		}
		others.Wait()
		if took := time.Since(begun); took > 4*time.Minute {
			t.Errorf("80 other requests took %v", took)
		}
		cancel()
		limited.Wait()
	})
}

// TestEndOfAWindow: a window that has one unit left says nothing about the time after its end, so no request of a long queue
// gives up.
func TestEndOfAWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n atomic.Int64
		transport := newTransport(t, roundTripper(func(*http.Request) (*http.Response, error) {
			left := `RateLimit: "a";r=60;t=6`
			if n.Add(1) == 1 {
				left = `RateLimit: "a";r=1;t=6`
			}
			resp := response(http.StatusOK, left)
			resp.Body = http.NoBody
			return resp, nil
		}), &client.Options{Pace: true, MaxWait: time.Minute})
		if failed, took := work(t, transport, 60, 32); failed > 0 || took > 15*time.Second {
			t.Errorf("%d failed in %v", failed, took)
		}
	})
}

// TestDeadRoute: a 503 without a wait that only some requests meet, and that lasts, does not delay the others.
func TestDeadRoute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		transport := newTransport(t, roundTripper(func(req *http.Request) (*http.Response, error) {
			resp := response(http.StatusOK)
			if req.URL.Path == "/dead" {
				resp = response(http.StatusServiceUnavailable)
			}
			resp.Body = http.NoBody
			return resp, nil
		}), nil)
		begun := time.Now()
		var dead sync.WaitGroup
		for range 10 {
			dead.Go(func() {
				req := get(t, context.Background())
				req.URL.Path = "/dead"
				if resp := send(t, transport, req); resp.StatusCode != http.StatusServiceUnavailable || time.Since(begun) > 2*time.Minute {
					t.Errorf("got %d after %v", resp.StatusCode, time.Since(begun))
				}
			})
		}
		for range 50 {
			before := time.Now()
			send(t, transport, get(t, context.Background()))
			if took := time.Since(before); took > 0 {
				t.Errorf("another request took %v", took)
			}
			time.Sleep(time.Second)
		}
		dead.Wait()
	})
}

// TestLongResponses: requests that are under way do not keep others back after a hold.
func TestLongResponses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n atomic.Int64
		transport := newTransport(t, roundTripper(func(*http.Request) (*http.Response, error) {
			resp := response(http.StatusOK)
			resp.Body = http.NoBody
			if n.Add(1) == 20 {
				resp = response(http.StatusTooManyRequests, "Retry-After: 1")
				resp.Body = http.NoBody
				return resp, nil
			}
			time.Sleep(10 * time.Second)
			return resp, nil
		}), nil)
		failed, took := work(t, transport, 400, 20)
		// Without the denial, 200 s.
		if failed > 0 || took > 250*time.Second {
			t.Errorf("%d failed, took %v", failed, took)
		}
	})
}
