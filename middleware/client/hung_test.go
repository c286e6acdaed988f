// Requests that get no answer, and services that are dead.

package client_test

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/penstock-go/penstock/middleware/client"
)

// TestHungRequest: after a hold, and with Pace at the beginning, one request asks alone. If its answer takes long, the
// others do not wait for it.
func TestHungRequest(t *testing.T) {
	for name, o := range map[string]client.Options{"after a denial": {}, "with Pace": {Pace: true}} {
		synctest.Test(t, func(t *testing.T) {
			var n atomic.Int64
			transport := newTransport(t, roundTripper(func(*http.Request) (*http.Response, error) {
				i, resp := n.Add(1), response(http.StatusOK)
				resp.Body = http.NoBody
				switch {
				case i == 1 && !o.Pace:
					resp.StatusCode = http.StatusTooManyRequests
					resp.Header.Set("Retry-After", "1")
				case i == 1 || i == 2 && !o.Pace:
					time.Sleep(time.Minute)
				}
				return resp, nil
			}), &o)
			var wg sync.WaitGroup
			wg.Go(func() { send(t, transport, get(t, context.Background())) })
			synctest.Wait()
			begun := time.Now()
			for range 20 {
				wg.Go(func() {
					send(t, transport, get(t, context.Background()))
					if took := time.Since(begun); took > 7*time.Second {
						t.Errorf("%s: a request waited %v for another one", name, took)
					}
				})
			}
			wg.Wait()
		})
	}
}

// TestDeadService: a service that answers only 503 loses each request within two minutes, also a request that waits
// behind others. A service that comes back to life loses none.
func TestDeadService(t *testing.T) {
	for _, o := range []client.Options{{}, {Pace: true}} {
		for _, dead := range []time.Duration{time.Minute, time.Hour} {
			synctest.Test(t, func(t *testing.T) {
				begun := time.Now()
				transport := newTransport(t, roundTripper(func(*http.Request) (*http.Response, error) {
					time.Sleep(time.Millisecond)
					resp := response(http.StatusOK)
					if time.Since(begun) < dead {
						resp = response(http.StatusServiceUnavailable)
					}
					resp.Body = http.NoBody
					return resp, nil
				}), &o)
				var wg sync.WaitGroup
				for range 32 {
					wg.Go(func() {
						resp, err := transport.RoundTrip(get(t, context.Background()))
						took := time.Since(begun)
						if lost := err != nil || resp.StatusCode != http.StatusOK; lost != (dead == time.Hour) {
							t.Errorf("pace %v, dead for %v: got %v, %v after %v", o.Pace, dead, resp, err, took)
						}
						if took > deadAfter || err != nil && (!errors.Is(err, client.ErrWait) || errors.Is(err, context.DeadlineExceeded)) {
							t.Errorf("pace %v, dead for %v: got %v after %v, want at most %v", o.Pace, dead, err, took, deadAfter)
						}
					})
					time.Sleep(time.Millisecond)
				}
				wg.Wait()
			})
		}
	}
}

// deadAfter is how long requests wait for a service that answers 503 without a wait.
const deadAfter = 2*time.Minute + time.Second

// TestLongQueue: a service that answers 503 at times, and admits requests between them, is not dead, however long a queue is.
func TestLongQueue(t *testing.T) {
	for _, o := range []client.Options{{}, {Pace: true}} {
		synctest.Test(t, func(t *testing.T) {
			server := &foreign{rate: 2, quota: 1, status: http.StatusServiceUnavailable, at: time.Now(), left: 1, latency: time.Millisecond}
			transport := newTransport(t, server, &o)
			var wg sync.WaitGroup
			var failed atomic.Int64
			begun := time.Now()
			for range 200 {
				wg.Go(func() {
					if resp, err := transport.RoundTrip(get(t, context.Background())); err != nil || resp.StatusCode != http.StatusOK {
						failed.Add(1)
					}
				})
			}
			wg.Wait()
			t.Logf("pace %v: denied %d, took %v", o.Pace, server.denied, time.Since(begun))
			if failed.Load() > 0 {
				t.Errorf("pace %v: %d failed", o.Pace, failed.Load())
			}
		})
	}
}
