// The crowd: clients that call a server, each in a goroutine of its own.

package main

import (
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

const (
	least = 2 * time.Millisecond  // time of a round trip
	most  = 20 * time.Millisecond // time of a round trip
)

// A setting says how many clients there are, and how many calls each makes, one after the other.
type setting struct {
	name     string
	title    string
	clients  int
	calls    int
	attempts int           // of each call
	within   time.Duration // the time in which all clients begin
	pauses   bool          // of 20 to 200 ms between calls
}

// endless is a number of attempts after which every client has been served.
const endless = 1_000_000

// ideal returns how long the rate of the limit takes to admit all successes.
func (s setting) ideal() time.Duration {
	return time.Duration(s.clients*s.calls) * time.Second / rate
}

// A result sums up the requests of a crowd.
type result struct {
	kind     string
	requests int
	served   int
	failed   int           // calls
	done     time.Duration // when the last success arrived
	seconds  []int         // requests in each second
}

func (r *result) denied() int { return r.requests - r.served }

func (r *result) perSuccess(n int) float64 { return float64(n) / float64(max(r.served, 1)) }

// peak returns the most requests in any second except the first.
func (r *result) peak() int {
	most := 0
	for _, requests := range r.seconds[min(1, len(r.seconds)):] {
		most = max(most, requests)
	}
	return most
}

// count counts an arrival.
func (r *result) count(at time.Duration, served bool) {
	for len(r.seconds) <= int(at/time.Second) {
		r.seconds = append(r.seconds, 0)
	}
	r.seconds[at/time.Second]++
	r.requests++
	if served {
		r.served++
		r.done = max(r.done, at)
	}
}

// A visitor is one client of a crowd. It is the RoundTripper of the client.
type visitor struct {
	number int
	random *rand.Rand
	ask    func(v *visitor) *httptest.ResponseRecorder
}

func (v *visitor) draw(n time.Duration) time.Duration {
	if n <= 0 {
		return 0
	}
	return time.Duration(v.random.Int64N(int64(n)))
}

// RoundTrip sends a request, whatever it is.
func (v *visitor) RoundTrip(*http.Request) (*http.Response, error) {
	w := v.ask(v)
	time.Sleep(least + v.draw(most-least))
	return w.Result(), nil
}

// simulate runs a crowd of one kind in simulated time, until all calls have ended.
func simulate(t *testing.T, s setting, k kind, seed uint64) (r result) {
	t.Helper()
	r.kind = k.name
	synctest.Test(t, func(t *testing.T) {
		handlers, begin := k.server(), time.Now()
		var all sync.WaitGroup
		var mu sync.Mutex // guards r
		ask := func(v *visitor) *httptest.ResponseRecorder {
			instance := 0
			if len(handlers) > 1 {
				instance = v.random.IntN(len(handlers))
			}
			w, req := httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, url, nil)
			req.RemoteAddr = netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, byte(v.number >> 8), byte(v.number)}), 1234).String()
			handlers[instance].ServeHTTP(w, req)
			mu.Lock()
			defer mu.Unlock()
			r.count(time.Since(begin), w.Code == http.StatusOK)
			return w
		}
		for i := range s.clients {
			all.Go(func() {
				v := &visitor{i, rand.New(rand.NewPCG(seed, uint64(i))), ask}
				failed, err := s.visit(v, k.program(v, s.attempts))
				if err != nil {
					t.Errorf("%s: %v", k.name, err)
				}
				mu.Lock()
				defer mu.Unlock()
				r.failed += failed
			})
		}
		all.Wait()
	})
	return r
}

// visit makes the calls of one client, and returns how many failed.
func (s setting) visit(v *visitor, send func() (*http.Response, error)) (failed int, err error) {
	time.Sleep(v.draw(s.within))
	for range s.calls {
		if s.pauses {
			time.Sleep(20*time.Millisecond + v.draw(180*time.Millisecond))
		}
		resp, err := send()
		if err != nil {
			return failed, err
		}
		_, _ = io.Copy(io.Discard, resp.Body) // it is in memory
		if resp.StatusCode != http.StatusOK {
			failed++
		}
	}
	return failed, nil
}
