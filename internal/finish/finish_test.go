// The experiment: each client sends 300 requests to each server, with 1, 8 and 32 workers.

package finish

import (
	"context"
	"net/http"
	"net/http/httptest"
	"slices"
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
	server, client       string
	workers              int
	sent, denied, failed int
	took                 time.Duration
}

// send sends the requests of workers through a client.
func send(url string, base http.RoundTripper, c contestant, workers int) result {
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
	return result{"", c.name, workers, int(sent.Load()), int(denied.Load()), int(failed.Load()), time.Since(begun)}
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

// TestSimulated runs the imitations in fake time, and checks the bars for the median of nine runs.
func TestSimulated(t *testing.T) {
	for _, s := range append(imitations(),
		service{"HAProxy's counter", func() http.Handler { return &sliding{} }},
		service{"bucket, bare 429", func() http.Handler { return &bucket{burst: 20, status: 429} }},
	) {
		t.Run(s.name, func(t *testing.T) {
			var results []result
			for _, c := range contestants {
				for _, workers := range crowds {
					var runs []result
					for range 9 {
						synctest.Test(t, func(t *testing.T) {
							time.Sleep(time.Until(time.Date(2026, 11, 21, 12, 0, 0, 300_000_000, time.UTC)))
							runs = append(runs, send("http://api.example.com/", direct(s.fresh()), c, workers))
						})
					}
					r := median(runs)
					r.server = s.name
					results = append(results, r)
				}
			}
			t.Logf("\n%s", table(results))
			checkBars(t, results)
		})
	}
}

// median returns the most failures of some runs, and the medians of the other numbers.
func median(runs []result) result {
	r := runs[0]
	of := func(number func(result) int) int {
		var all []int
		for _, r := range runs {
			all = append(all, number(r))
		}
		slices.Sort(all)
		return all[len(all)/2]
	}
	r.sent, r.denied = of(func(r result) int { return r.sent }), of(func(r result) int { return r.denied })
	r.took = time.Duration(of(func(r result) int { return int(r.took) }))
	for _, other := range runs {
		r.failed = max(r.failed, other.failed)
	}
	return r
}

// atOnce is how many runs are under way at a time: more would keep two processors so busy that timers are late.
const atOnce = 40

// TestFinish runs the herd, then all clients against all servers, side by side, and writes RESULTS.md.
func TestFinish(t *testing.T) {
	if testing.Short() {
		t.Skip("takes up to 30 minutes")
	}
	crowd := realHerd(t)
	servers := slices.Concat(goServers(), npmServers(t), proxies(t))
	for _, s := range imitations() {
		servers = append(servers, server{s.name, handled(s.fresh)})
	}
	slots := make(chan struct{}, atOnce)
	results := make([]result, len(servers)*len(contestants)*len(crowds))
	var wg sync.WaitGroup
	i := 0
	for _, workers := range crowds {
		for _, s := range servers {
			for _, c := range contestants {
				to := &results[i]
				i++
				slots <- struct{}{}
				wg.Go(func() {
					defer func() { <-slots }()
					url, base, stop := s.start()
					defer stop()
					*to = send(url, base, c, workers)
					to.server = s.name
				})
			}
		}
	}
	wg.Wait()
	page(t, results, crowd)
	checkBars(t, results)
}
