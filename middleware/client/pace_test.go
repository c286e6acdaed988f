// The pace: requests of all goroutines spread over the server's window, in their order.

package client_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/headers"
	"github.com/penstock-go/penstock/middleware"
	"github.com/penstock-go/penstock/middleware/client"
)

// limited returns a server with a limit per address.
func limited(t testing.TB, l algorithms.Limit, d headers.Dialect) handler {
	t.Helper()
	m, err := ratelimit.New(algorithms.NewMemory(nil), &ratelimit.Options{Headers: d}, ratelimit.Policy{Name: "api", Limit: l})
	if err != nil {
		t.Fatal(err)
	}
	return handler{m.Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})), 20 * time.Millisecond}
}

// tally counts the denials and the departures that an Observer sees.
type tally struct{ sent, denied atomic.Int64 }

func (c *tally) Observe(_ context.Context, e client.Event) {
	if e.Kind != client.Sent {
		return
	}
	c.sent.Add(1)
	if e.Denied {
		c.denied.Add(1)
	}
}

// crowd sends n requests at once, and returns how long they took.
func crowd(t *testing.T, n int, transport func(i int) http.RoundTripper) time.Duration {
	t.Helper()
	begun := time.Now()
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			resp, err := transport(i).RoundTrip(get(t, context.Background()))
			if err != nil || resp.StatusCode != http.StatusOK {
				t.Errorf("request %d: got %v, %v", i, resp, err)
			}
		})
	}
	wg.Wait()
	return time.Since(begun)
}

// TestPaceMeetsNoDenial: a client that paces alone is never denied, and uses the rate.
func TestPaceMeetsNoDenial(t *testing.T) {
	limits := []algorithms.Limit{
		algorithms.TokenBucket(60, time.Minute).WithBurst(10), algorithms.TokenBucket(10, time.Second),
		algorithms.SlidingWindowCounter(60, time.Minute), algorithms.SlidingWindowLog(60, time.Minute),
		algorithms.FixedWindow(60, time.Minute),
	}
	for _, l := range limits {
		for _, d := range []headers.Dialect{headers.Draft, headers.SeparateFields, headers.XRateLimit} {
			t.Run(fmt.Sprint(l, " ", d), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					// Into a window, of a year whose Unix times a Reader recognizes.
					time.Sleep(time.Until(time.Date(2026, 11, 21, 12, 0, 17, 0, time.UTC)))
					events := &tally{}
					transport := newTransport(t, limited(t, l, d), &client.Options{Pace: true, Observers: []client.Observer{events}})
					const n = 200
					took := crowd(t, n, func(int) http.RoundTripper { return transport })
					ideal := l.Window() * n / time.Duration(l.Requests())
					t.Logf("%d denials, %v of an ideal %v", events.denied.Load(), took, ideal)
					if events.denied.Load() > 0 {
						t.Errorf("got %d denials", events.denied.Load())
					}
					// The t of a window that slides is up to twice the window. The resets of
					// single numbers are those of the full limit.
					if took > 5*ideal/2 {
						t.Errorf("took %v, ideal %v", took, ideal)
					}
				})
			})
		}
	}
}

// TestPaceOfSeveralClients: clients that share one quota meet few denials.
func TestPaceOfSeveralClients(t *testing.T) {
	for _, l := range []algorithms.Limit{algorithms.TokenBucket(10, time.Second), algorithms.FixedWindow(100, 10*time.Second)} {
		synctest.Test(t, func(t *testing.T) {
			server, events := limited(t, l, 0), &tally{}
			var transports []*client.Transport
			for range 10 {
				transports = append(transports, newTransport(t, server, &client.Options{Pace: true, Attempts: 100, Observers: []client.Observer{events}}))
			}
			const n = 1000
			took := crowd(t, n, func(i int) http.RoundTripper { return transports[i%len(transports)] })
			// Without the stretch, the bucket denies about 700.
			if denied := events.denied.Load(); denied > n/3 || took > 300*time.Second {
				t.Errorf("%v: got %d denials of %d in %v, want few in little more than 100 s", l, denied, n, took)
			}
		})
	}
}

// TestPaceIsFirstInFirstOut: requests leave in the order in which they came, and one that
// gives up leaves no hole.
func TestPaceIsFirstInFirstOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var order []string
		transport := newTransport(t, roundTripper(func(req *http.Request) (*http.Response, error) {
			mu.Lock()
			defer mu.Unlock()
			order = append(order, fmt.Sprint(req.Header.Get("I"), "@", time.Since(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)).Seconds()))
			resp := response(http.StatusOK, `RateLimit: "a";r=5;t=10`)
			resp.Body = http.NoBody
			return resp, nil
		}), &client.Options{Pace: true})
		var wg sync.WaitGroup
		for i := range 6 {
			wg.Go(func() {
				ctx, cancel := context.WithCancel(context.Background())
				defer cancel()
				if i == 2 {
					time.AfterFunc(3*time.Second, cancel)
				}
				req := get(t, ctx)
				req.Header.Set("I", fmt.Sprint(i))
				if _, err := transport.RoundTrip(req); errors.Is(err, context.Canceled) != (i == 2) {
					t.Errorf("%d: got %v", i, err)
				}
			})
			synctest.Wait()
		}
		wg.Wait()
		if want := []string{"0@0", "1@2", "3@4", "4@6", "5@8"}; !slices.Equal(order, want) {
			t.Errorf("got %v, want %v", order, want)
		}
	})
}

// TestPaceAtOnce: a request whose turn comes after its deadline fails at once, and is not
// sent.
func TestPaceAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{responses: []*http.Response{response(http.StatusOK, `RateLimit: "a";r=0;t=60`)}}
		events := &eventLog{}
		transport := newTransport(t, s, &client.Options{Pace: true, Observers: []client.Observer{events}})
		send(t, transport, get(t, context.Background()))
		ctx, cancel := context.WithTimeout(context.Background(), 59*time.Second)
		defer cancel()
		begun := time.Now()
		_, err := transport.RoundTrip(get(t, ctx))
		if !errors.Is(err, client.ErrWait) || !errors.Is(err, context.DeadlineExceeded) || time.Since(begun) > 0 || len(s.arrived) != 1 {
			t.Errorf("got %v after %v, %d requests", err, time.Since(begun), len(s.arrived))
		}
		send(t, transport, get(t, context.Background()))
		if got := s.gaps(); got[0] != time.Minute {
			t.Errorf("got %v, want the end of the window", got)
		}
		if got := events.kinds(); got != "registered sent gave_up_wait waited_pace sent" && got != "registered sent gave_up_wait sent waited_pace" {
			t.Errorf("got %s", got)
		}
	})
}

// TestPaceOfALongQueue: requests whose turn in the queue comes too late fail at once.
func TestPaceOfALongQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{responses: []*http.Response{response(http.StatusOK, `RateLimit: "a";r=10;t=100`)}}
		transport := newTransport(t, s, &client.Options{Pace: true, MaxWait: 35 * time.Second})
		send(t, transport, get(t, context.Background()))
		begun := time.Now()
		var wg sync.WaitGroup
		for i := range 5 {
			wg.Go(func() {
				_, err := transport.RoundTrip(get(t, context.Background()))
				if late := i > 2; errors.Is(err, client.ErrWait) != late || late && time.Since(begun) > 0 {
					t.Errorf("%d: got %v after %v", i, err, time.Since(begun))
				}
			})
			synctest.Wait()
		}
		wg.Wait()
	})
}

// TestEndedRequestUsesNoTurn: a request whose context has ended does not delay the next.
func TestEndedRequestUsesNoTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{responses: []*http.Response{response(http.StatusOK, `RateLimit: "a";r=10;t=100`)}}
		transport := newTransport(t, s, &client.Options{Pace: true})
		send(t, transport, get(t, context.Background()))
		time.Sleep(10 * time.Second)
		ended, cancel := context.WithCancel(context.Background())
		cancel()
		if _, err := transport.RoundTrip(get(t, ended)); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		send(t, transport, get(t, context.Background()))
		if gaps := s.gaps(); !slices.Equal(gaps, []time.Duration{10 * time.Second}) {
			t.Errorf("got the gaps %v, want one of 10 s", gaps)
		}
	})
}

// TestPaceReturnsTheDenial: a denied request whose next turn exceeds its budget is returned
// denied. It does not wait first, to fail afterwards.
func TestPaceReturnsTheDenial(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun, n := time.Now(), 0
		transport := newTransport(t, roundTripper(func(*http.Request) (*http.Response, error) {
			n++
			resp := response(http.StatusOK, `RateLimit: "a";r=1;t=10`, `RateLimit-Policy: "a";q=1;w=10`)
			if n == 2 {
				time.Sleep(time.Second) // three requests join the queue
				resp = response(http.StatusTooManyRequests, "Retry-After: 1")
			}
			resp.Body = http.NoBody
			return resp, nil
		}), &client.Options{Pace: true, MaxWait: 25 * time.Second})
		send(t, transport, get(t, context.Background()))
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() {
				time.Sleep(10500 * time.Millisecond)
				_, _ = transport.RoundTrip(get(t, context.Background())) // it may fail, because the denial doubles the interval
			})
		}
		resp, err := transport.RoundTrip(get(t, context.Background()))
		if err != nil || resp.StatusCode != http.StatusTooManyRequests || time.Since(begun) != 11*time.Second {
			t.Errorf("got %v, %v after %v", resp, err, time.Since(begun))
		}
		wg.Wait()
	})
}

// TestPaceIsBounded: an absurd interval holds requests for MaxWait. A server that admits
// nothing for a year is asked once in each MaxWait.
func TestPaceIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{responses: []*http.Response{response(http.StatusOK, `RateLimit: "a";r=1;t=999999999999999`)}}
		transport := newTransport(t, s, &client.Options{Pace: true, MaxWait: time.Minute})
		send(t, transport, get(t, context.Background()))
		send(t, transport, get(t, context.Background()))
		if got := s.gaps(); got[0] != time.Minute {
			t.Errorf("got %v", got)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		s := &script{}
		for range 5 {
			s.responses = append(s.responses, response(http.StatusOK, `RateLimit: "a";r=0;t=999999999999999`))
		}
		transport := newTransport(t, s, &client.Options{Pace: true, MaxWait: time.Minute})
		for range 18 { // one each ten seconds
			resp, err := transport.RoundTrip(get(t, context.Background()))
			if err == nil {
				_ = resp.Body.Close() // a script's body does not fail
			} else if !errors.Is(err, client.ErrWait) || errors.Is(err, context.DeadlineExceeded) {
				t.Error(err)
			}
			time.Sleep(10 * time.Second)
		}
		if got := s.gaps(); !slices.Equal(got, []time.Duration{time.Minute, time.Minute}) {
			t.Errorf("got %v, want one request a minute", got)
		}
	})
}

// TestPaceProbes: while a server is unknown, one request is under way. Its failure lets
// the next go, and a server that advertises nothing is not paced.
func TestPaceProbes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var arrived []time.Duration
		begun := time.Now()
		transport := newTransport(t, roundTripper(func(req *http.Request) (*http.Response, error) {
			mu.Lock()
			arrived = append(arrived, time.Since(begun))
			first := len(arrived) == 1
			mu.Unlock()
			time.Sleep(time.Second)
			if first {
				return nil, errors.New("connection refused")
			}
			resp := response(http.StatusOK)
			resp.Body = http.NoBody
			return resp, nil
		}), &client.Options{Pace: true})
		var wg sync.WaitGroup
		for range 5 {
			wg.Go(func() { _, _ = transport.RoundTrip(get(t, context.Background())) }) // the first fails
		}
		wg.Wait()
		if want := []time.Duration{0, time.Second, 2 * time.Second, 2 * time.Second, 2 * time.Second}; !slices.Equal(arrived, want) {
			t.Errorf("got %v, want %v", arrived, want)
		}
	})
}

// TestPartitions: origins and partitions have paces of their own.
func TestPartitions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		transport := newTransport(t, roundTripper(func(*http.Request) (*http.Response, error) {
			resp := response(http.StatusOK, `RateLimit: "a";r=1;t=100`)
			resp.Body = http.NoBody
			return resp, nil
		}), &client.Options{Pace: true, Partition: func(req *http.Request) string { return req.Header.Get("X-API-Key") }})
		for i, request := range []struct {
			url, key string
			want     time.Duration // since the begin
		}{
			{"http://a.example/1", "", 0}, {"http://b.example/1", "", 0}, {"https://a.example/", "", 0}, {"http://a.example:8080/", "", 0},
			{"http://a.example/1", "k", 0}, {"http://A.example:80/2", "", 100 * time.Second}, {"https://a.example:443/2", "", 100 * time.Second},
			{"http://a.example/2", "k", 100 * time.Second},
		} {
			req, err := http.NewRequest(http.MethodGet, request.url, nil)
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("X-API-Key", request.key)
			send(t, transport, req)
			if got := time.Since(begun); got != request.want {
				t.Errorf("%d: %s of %q left at %v, want %v", i, request.url, request.key, got, request.want)
			}
		}
	})
}
