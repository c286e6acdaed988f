// The experiment: each client sends 300 requests to each server, with 1, 8 and 32 workers.

package finish

import (
	"context"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

const (
	requests = 300
	deadline = 2 * time.Minute // of a request
)

var crowds = []int{1, 8, 32}

// A server can be started many times: each client meets a fresh one. The name of a server that advertises its limit in each
// response ends with an asterisk.
type server struct {
	name  string
	start func() (url string, base http.RoundTripper, stop func())
}

func (s server) advertises() bool { return strings.HasSuffix(s.name, "*") }

// handled returns the start of a handler.
func handled(fresh func() http.Handler) func() (string, http.RoundTripper, func()) {
	return func() (string, http.RoundTripper, func()) {
		s := httptest.NewServer(fresh())
		base := &http.Transport{MaxIdleConnsPerHost: 64}
		return s.URL, base, func() { base.CloseIdleConnections(); s.Close() }
	}
}

// A result is what became of 300 requests.
type result struct {
	sent, denied, failed int
	took                 time.Duration
}

// run sends the requests through a client to a fresh server.
func run(s server, c contestant, workers int) (r result) {
	url, base, stop := s.start()
	defer stop()
	return send(url, base, c, workers)
}

func send(url string, base http.RoundTripper, c contestant, workers int) (r result) {
	var sent, denied, failed, next atomic.Int64
	do := c.start(counter(func(req *http.Request) (*http.Response, error) {
		sent.Add(1)
		resp, err := base.RoundTrip(req)
		if err == nil && slices.Contains(statuses, resp.StatusCode) {
			denied.Add(1)
		}
		return resp, err
	}))
	begun := time.Now()
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for next.Add(1) <= requests {
				ctx, cancel := context.WithTimeout(context.Background(), deadline)
				if do(ctx, url) != http.StatusOK {
					failed.Add(1)
				}
				cancel()
			}
		})
	}
	wg.Wait()
	return result{int(sent.Load()), int(denied.Load()), int(failed.Load()), time.Since(begun)}
}

type counter func(*http.Request) (*http.Response, error)

func (c counter) RoundTrip(req *http.Request) (*http.Response, error) { return c(req) }

// direct reaches a handler without a network.
func direct(h http.Handler) counter {
	return func(req *http.Request) (*http.Response, error) {
		time.Sleep(500 * time.Microsecond)
		w := httptest.NewRecorder()
		in := req.Clone(req.Context())
		in.RemoteAddr = "192.0.2.1:1234"
		h.ServeHTTP(w, in)
		time.Sleep(500 * time.Microsecond)
		return w.Result(), req.Context().Err()
	}
}

// TestSimulation runs the imitations in fake time.
func TestSimulation(t *testing.T) {
	for _, s := range simulated() {
		for _, c := range contestants {
			for _, workers := range crowds {
				synctest.Test(t, func(t *testing.T) {
					time.Sleep(time.Until(time.Date(2026, 11, 21, 12, 0, 0, 300_000_000, time.UTC)))
					r := send("http://api.example.com/", direct(s.fresh()), c, workers)
					t.Logf("%-32s %-18s %2d: %4d sent %4d denied %3d failed %.1fs", s.name, c.name, workers, r.sent, r.denied, r.failed, r.took.Seconds())
				})
			}
		}
	}
}

// TestStripe shows how times vary.
func TestStripe(t *testing.T) {
	for _, s := range simulated() {
		if s.name != "Stripe" {
			continue
		}
		for _, workers := range crowds {
			var took, denied []float64
			for range 40 {
				synctest.Test(t, func(t *testing.T) {
					r := send("http://api.example.com/", direct(s.fresh()), contestants[0], workers)
					took, denied = append(took, r.took.Seconds()), append(denied, float64(r.denied))
				})
			}
			slices.Sort(took)
			slices.Sort(denied)
			t.Logf("%d workers: took %.1f median %.1f p90 %.1f max; denied %v median %v max", workers, took[20], took[36], took[39], denied[20], denied[39])
		}
	}
}
