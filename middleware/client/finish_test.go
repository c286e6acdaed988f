// A Transport finishes: with the zero Options, no request of many workers is lost at a server that denies.

package client_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/penstock-go/penstock/middleware/client"
)

// A foreign is a server with a limit of its own, without a network. A bucket has a rate, a window does not.
type foreign struct {
	mu      sync.Mutex
	window  time.Duration
	quota   float64
	rate    float64 // per second; 0: a fixed window
	status  int
	hint    func(h http.Header, wait time.Duration) // nil: a bare denial
	counts  bool                                    // denials are counted, too
	left    float64
	at      time.Time
	denied  int
	latency time.Duration
}

func (f *foreign) RoundTrip(req *http.Request) (*http.Response, error) {
	time.Sleep(f.latency)
	f.mu.Lock()
	defer f.mu.Unlock()
	now := time.Now()
	resp := response(http.StatusOK)
	if f.rate > 0 {
		f.left = min(f.quota, f.left+f.rate*now.Sub(f.at).Seconds())
		f.at = now
	} else if now.Sub(f.at) >= f.window {
		f.left, f.at = f.quota, now
	}
	if f.left < 1 {
		resp = response(f.status)
		f.denied++
		wait := f.at.Add(f.window).Sub(now)
		if f.rate > 0 {
			wait = time.Duration((1 - f.left) / f.rate * float64(time.Second))
		}
		if f.hint != nil {
			f.hint(resp.Header, wait)
		}
	}
	if f.left >= 1 || f.counts {
		f.left = max(f.left-1, -f.quota)
	}
	resp.Body, resp.Request = http.NoBody, req
	return resp, nil
}

func retryAfter(h http.Header, wait time.Duration) {
	h.Set("Retry-After", strconv.Itoa(int((wait+time.Second-1)/time.Second)))
}

func retryAfterDown(h http.Header, wait time.Duration) {
	h.Set("Retry-After", strconv.Itoa(int(wait/time.Second)))
}

// work lets workers send n requests, each within two minutes, and returns how many failed, and how long all took.
func work(t *testing.T, transport http.RoundTripper, n, workers int) (failed int, took time.Duration) {
	t.Helper()
	var mu sync.Mutex
	var wg sync.WaitGroup
	begun, left := time.Now(), n
	for range workers {
		wg.Go(func() {
			for {
				mu.Lock()
				left--
				done := left < 0
				mu.Unlock()
				if done {
					return
				}
				ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
				resp, err := transport.RoundTrip(get(t, ctx))
				cancel()
				if err != nil || resp.StatusCode != http.StatusOK {
					mu.Lock()
					failed++
					mu.Unlock()
				}
			}
		})
	}
	wg.Wait()
	return failed, time.Since(begun)
}

// TestFinishes: no request of 300 fails, and a stated wait costs each window less than one denial per worker.
func TestFinishes(t *testing.T) {
	const n = 300
	for _, tt := range []struct {
		name   string
		server *foreign
		denied func(workers int) int // at most
		took   time.Duration         // at most
	}{
		{"window with Retry-After", &foreign{window: 6 * time.Second, quota: 60, status: 429, hint: retryAfter},
			func(workers int) int { return workers + 30 }, 32 * time.Second},
		{"window with Retry-After rounded down", &foreign{window: 6 * time.Second, quota: 60, status: 429, hint: retryAfterDown},
			func(workers int) int { return 6*workers + 8 }, 36 * time.Second},
		{"bucket with Retry-After", &foreign{rate: 10, quota: 20, status: 429, hint: retryAfter},
			func(workers int) int { return 2*workers + 60 }, 35 * time.Second},
		{"bare window", &foreign{window: 6 * time.Second, quota: 60, status: 429}, func(workers int) int { return 20 + 6*workers }, 45 * time.Second},
		{"bare bucket of 503", &foreign{rate: 10, quota: 20, status: 503}, func(workers int) int { return 220 + 5*workers }, 40 * time.Second},
		{"bare bucket without a burst", &foreign{rate: 10, quota: 1, status: 503}, func(workers int) int { return 80 + 3*workers }, 70 * time.Second},
		{"bare bucket that counts denials", &foreign{rate: 10, quota: 20, status: 429, counts: true}, func(workers int) int { return 40 * workers }, 110 * time.Second},
	} {
		for _, workers := range []int{1, 8, 32} {
			for _, o := range []client.Options{{}, {Pace: true}} {
				t.Run(fmt.Sprintf("%s, %d workers, pace %v", tt.name, workers, o.Pace), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						server := &foreign{
							window: tt.server.window, quota: tt.server.quota, rate: tt.server.rate, status: tt.server.status, hint: tt.server.hint,
							counts: tt.server.counts, at: time.Now(), left: tt.server.quota, latency: time.Millisecond,
						}
						failed, took := work(t, newTransport(t, server, &o), n, workers)
						t.Logf("denied %d, failed %d, took %v", server.denied, failed, took)
						if failed > 0 || server.denied > tt.denied(workers) || took > tt.took {
							t.Errorf("want no failure, at most %d denials, at most %v", tt.denied(workers), tt.took)
						}
					})
				})
			}
		}
	}
}

// TestDeniedLeaveFirst: a stated wait holds all requests of the origin. After it the denied leave in the order of their
// arrival, then the newcomers.
func TestDeniedLeaveFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var order []string
		begun := time.Now()
		transport := newTransport(t, roundTripper(func(req *http.Request) (*http.Response, error) {
			resp := response(http.StatusOK)
			resp.Body = http.NoBody
			if req.URL.Host != "api.example.com" {
				return resp, nil
			}
			mu.Lock()
			tried := len(order)
			order = append(order, req.Header.Get("I"))
			mu.Unlock()
			time.Sleep(time.Duration(4-min(tried, 3)) * time.Second) // the third is denied first
			if tried < 3 {
				resp.StatusCode = http.StatusTooManyRequests
				resp.Header.Set("Retry-After", "10")
			}
			return resp, nil
		}), nil)
		var wg sync.WaitGroup
		for i := range 6 {
			if i == 3 { // the denials have arrived
				time.Sleep(5 * time.Second)
			}
			wg.Go(func() {
				req := get(t, context.Background())
				req.Header.Set("I", strconv.Itoa(i))
				send(t, transport, req)
			})
			synctest.Wait()
		}
		other := get(t, context.Background())
		other.URL.Host = "other.example.com"
		send(t, transport, other)
		if took := time.Since(begun); took != 5*time.Second {
			t.Errorf("a request to another origin waited until %v", took)
		}
		wg.Wait()
		// The first denial arrives after 4 s, and its wait ends after 14 s, at most 15 s. No denied request was admitted
		// before, so the next leave one at a time, then two.
		if took := time.Since(begun); took < 15*time.Second || took > 19*time.Second {
			t.Errorf("took %v", took)
		}
		if want := []string{"0", "1", "2", "0", "1", "2", "3", "4", "5"}; !slices.Equal(order, want) {
			t.Errorf("got %v, want %v", order, want)
		}
	})
}

// TestHeldRequests: a request that cannot wait as long as the server has stated fails at once, and is not sent.
func TestHeldRequests(t *testing.T) {
	for _, attempts := range []int{0, 1} {
		synctest.Test(t, func(t *testing.T) {
			s, events := denials(1, "Retry-After: 60"), &eventLog{}
			transport := newTransport(t, s, &client.Options{Attempts: attempts, MaxWait: 50 * time.Second, Observers: []client.Observer{events}})
			send(t, transport, get(t, context.Background()))
			begun := time.Now()
			_, err := transport.RoundTrip(get(t, context.Background()))
			if !errors.Is(err, client.ErrWait) || time.Since(begun) > 0 || len(s.arrived) != 1 || !strings.Contains(err.Error(), "waited 0s for the server, at least 1m") {
				t.Errorf("got %v after %v, %d requests", err, time.Since(begun), len(s.arrived))
			}
			time.Sleep(20 * time.Second)
			send(t, transport, get(t, context.Background()))
			gave := map[int]string{0: "gave_up_wait", 1: "gave_up_attempts"}[attempts]
			if got := events.kinds(); got != "registered sent "+gave+" gave_up_wait sent waited_pace" && got != "registered sent "+gave+" gave_up_wait waited_pace sent" {
				t.Errorf("got %s", got)
			}
		})
	}
}
