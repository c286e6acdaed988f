// The caller's own limiter: requests wait for it, and hold units of concurrent limits.

package client_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/middleware/client"
)

// TestLimiter: requests leave at the rate of the limit, first in, first out.
func TestLimiter(t *testing.T) {
	for _, tt := range []struct {
		limit algorithms.Limit
		want  []float64 // seconds
	}{
		{algorithms.TokenBucket(1, time.Second).WithBurst(2), []float64{0, 0, 1, 2, 3, 4}},
		{algorithms.LeakyBucket(1, time.Second).WithBurst(3), []float64{0, 1, 2, 3, 4, 5}},
		{algorithms.SlidingWindowLog(3, 10*time.Second), []float64{0, 0, 0, 10, 10, 10}},
	} {
		synctest.Test(t, func(t *testing.T) {
			var mu sync.Mutex
			begun, got := time.Now(), make([]float64, len(tt.want))
			transport := newTransport(t, roundTripper(func(req *http.Request) (*http.Response, error) {
				i, err := strconv.Atoi(req.Header.Get("I"))
				if err != nil {
					return nil, err
				}
				mu.Lock()
				got[i] = time.Since(begun).Seconds() // the scheduler orders requests of one instant
				mu.Unlock()
				resp := response(http.StatusOK)
				resp.Body = http.NoBody
				return resp, nil
			}), &client.Options{Limiter: algorithms.NewMemory(nil), Limit: tt.limit})
			var wg sync.WaitGroup
			for i := range tt.want {
				wg.Go(func() {
					req := get(t, context.Background())
					req.Header.Set("I", strconv.Itoa(i))
					send(t, transport, req)
				})
				synctest.Wait()
			}
			wg.Wait()
			if !slices.Equal(got, tt.want) {
				t.Errorf("%v: got requests at %v, want %v", tt.limit, got, tt.want)
			}
		})
	}
}

// TestLimiterIsShared: two Transports of one name share a budget, by origin.
func TestLimiterIsShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory, limit := algorithms.NewMemory(nil), algorithms.TokenBucket(1, 10*time.Second)
		s, begun := &script{}, time.Now()
		for i, want := range []time.Duration{0, 10 * time.Second, 20 * time.Second} {
			send(t, newTransport(t, s, &client.Options{Name: "github", Limiter: memory, Limit: limit}), get(t, context.Background()))
			if got := time.Since(begun); got != want {
				t.Errorf("%d: sent at %v, want %v", i, got, want)
			}
		}
		send(t, newTransport(t, s, &client.Options{Name: "gitlab", Limiter: memory, Limit: limit}), get(t, context.Background()))
		if got := time.Since(begun); got != 20*time.Second {
			t.Errorf("another name: sent at %v", got)
		}
		d, err := algorithms.AllowN(context.Background(), memory, "origin=http://api.example.com", limit, 0)
		if err != nil || !d.Allowed {
			t.Errorf("the policy is not the name: %v, %v", d, err)
		}
	})
}

// TestLimiterAtOnce: a request whose unit comes after its deadline fails at once, and its
// body is closed.
func TestLimiterAtOnce(t *testing.T) {
	for _, limit := range []algorithms.Limit{
		algorithms.TokenBucket(1, time.Hour), algorithms.LeakyBucket(1, time.Hour).WithBurst(2), algorithms.Concurrent(1, time.Hour),
	} {
		synctest.Test(t, func(t *testing.T) {
			s, events, memory := &script{}, &eventLog{}, algorithms.NewMemory(nil)
			transport := newTransport(t, s, &client.Options{Limiter: memory, Limit: limit, MaxWait: time.Minute, Observers: []client.Observer{events}})
			first, err := transport.RoundTrip(get(t, context.Background()))
			if err != nil {
				t.Fatal(err)
			}
			body := &body{Reader: bytes.NewReader([]byte("x"))}
			req, err := http.NewRequest(http.MethodPost, url, body)
			if err != nil {
				t.Fatal(err)
			}
			begun := time.Now()
			_, err = transport.RoundTrip(req)
			took := time.Since(begun)
			if !errors.Is(err, client.ErrWait) || errors.Is(err, context.DeadlineExceeded) || body.closed == 0 || len(s.arrived) != 1 {
				t.Errorf("%v: got %v, closed %d times, %d requests", limit, err, body.closed, len(s.arrived))
			}
			// A concurrent unit may come back at any time, so its request waits.
			if want := map[bool]time.Duration{true: time.Minute}[limit.Algorithm().Concurrent()]; took != want {
				t.Errorf("%v: failed after %v, want %v", limit, took, want)
			}
			if got := events.kinds(); got != "registered sent gave_up_wait" {
				t.Errorf("%v: got %s", limit, got)
			}
			_ = first.Body.Close() // a script's body does not fail
		})
	}
}

// TestUnitsThatAreNotUsed: a request that is not sent takes no unit, and ends its turn in
// the pace.
func TestUnitsThatAreNotUsed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory, limit, s := algorithms.NewMemory(nil), algorithms.LeakyBucket(1, time.Hour).WithBurst(3), &script{}
		transport := newTransport(t, s, &client.Options{Limiter: memory, Limit: limit, Pace: true, MaxWait: 50 * time.Minute})
		left := func(want int64) {
			t.Helper()
			checks := []algorithms.Check{{Policy: "client", Key: "origin=http://api.example.com", Limit: limit}}
			if err := memory.Allow(context.Background(), checks); err != nil || checks[0].Decision.Remaining != want {
				t.Errorf("got %d units left, %v, want %d", checks[0].Decision.Remaining, err, want)
			}
		}
		ended, cancel := context.WithCancel(context.Background())
		cancel()
		if _, err := transport.RoundTrip(get(t, ended)); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		left(3)
		other := []algorithms.Check{{Policy: "client", Key: "origin=http://api.example.com", Limit: limit, Cost: 1}}
		if err := memory.Allow(context.Background(), other); err != nil {
			t.Fatal(err)
		}
		if _, err := transport.RoundTrip(get(t, context.Background())); !errors.Is(err, client.ErrWait) {
			t.Errorf("got %v", err)
		}
		left(2)
		time.Sleep(20 * time.Minute)
		leaving, cancel := context.WithCancel(context.Background())
		time.AfterFunc(10*time.Minute, cancel)
		if _, err := transport.RoundTrip(get(t, leaving)); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		left(2)
		send(t, transport, get(t, context.Background()))
		if len(s.arrived) != 1 {
			t.Errorf("got %d requests, want the last", len(s.arrived))
		}
	})
}

// TestLimiterErrors: a limiter that cannot decide sends nothing.
func TestLimiterErrors(t *testing.T) {
	s := &script{}
	transport := newTransport(t, s, &client.Options{Limiter: limiterFunc(func(context.Context, []algorithms.Check) error {
		return algorithms.ErrUnavailable
	}), Limit: algorithms.TokenBucket(1, time.Second)})
	if _, err := transport.RoundTrip(get(t, context.Background())); !errors.Is(err, algorithms.ErrUnavailable) || len(s.arrived) > 0 {
		t.Errorf("got %v, %d requests", err, len(s.arrived))
	}
}

type limiterFunc func(context.Context, []algorithms.Check) error

func (f limiterFunc) Allow(ctx context.Context, checks []algorithms.Check) error {
	return f(ctx, checks)
}

// TestConcurrent: a unit of a body that does not end is held until it is closed, however long that takes.
func TestConcurrent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const most = 3
		var running, peak atomic.Int64
		limit := algorithms.Concurrent(most, 2*time.Second) // shorter than a request
		memory := algorithms.NewMemory(nil)
		transport := newTransport(t, roundTripper(func(*http.Request) (*http.Response, error) {
			n := running.Add(1)
			for p := peak.Load(); n > p && !peak.CompareAndSwap(p, n); p = peak.Load() {
			}
			resp := response(http.StatusOK)
			resp.Body = &ending{end: func() { running.Add(-1) }}
			return resp, nil
		}), &client.Options{Limiter: memory, Limit: limit})
		begun := time.Now()
		var wg sync.WaitGroup
		for range 5 * most {
			wg.Go(func() {
				resp, err := transport.RoundTrip(get(t, context.Background()))
				if err != nil {
					t.Error(err)
					return
				}
				time.Sleep(5 * time.Second)
				_, _ = resp.Body.Close(), resp.Body.Close() // twice is harmless
			})
		}
		wg.Wait()
		if got := time.Since(begun); got != 25*time.Second || peak.Load() != most {
			t.Errorf("took %v with %d at a time, want 25s with %d", got, peak.Load(), most)
		}
		checks := []algorithms.Check{{Policy: "client", Key: "origin=http://api.example.com", Limit: limit, Cost: most}}
		if err := memory.Allow(context.Background(), checks); err != nil || !checks[0].Decision.Allowed {
			t.Errorf("not all units came back: %+v, %v", checks[0].Decision, err)
		}
	})
}

// An ending is an endless body.
type ending struct {
	once sync.Once
	end  func()
}

func (*ending) Read(p []byte) (int, error) { return len(p), nil }

func (e *ending) Close() error {
	e.once.Do(e.end)
	return nil
}

// TestConcurrentUnitsComeBack: after an error, a denial, and a response without a body.
func TestConcurrentUnitsComeBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		transport := newTransport(t, roundTripper(func(*http.Request) (*http.Response, error) {
			calls++
			if calls == 1 {
				return nil, io.ErrUnexpectedEOF
			}
			resp := response(http.StatusNoContent)
			if calls == 3 {
				resp = response(http.StatusTooManyRequests, "Retry-After: 3")
			}
			resp.Body = http.NoBody
			return resp, nil
		}), &client.Options{Limiter: algorithms.NewMemory(nil), Limit: algorithms.Concurrent(1, time.Hour)})
		begun := time.Now()
		for i := range 4 {
			if resp, err := transport.RoundTrip(get(t, context.Background())); (err != nil) != (i == 0) || err == nil && resp.Body != http.NoBody {
				t.Errorf("%d: got %v, %v", i, resp, err)
			}
		}
		if got := time.Since(begun); got > 4*time.Second {
			t.Errorf("took %v, want the one wait", got)
		}
	})
}

// TestUnitsComeBackAtTheEnd: a body that was read to its end and not closed returns its unit, once.
func TestUnitsComeBackAtTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory, s, returned := algorithms.NewMemory(nil), &script{}, 0
		transport := newTransport(t, s, &client.Options{Limit: algorithms.Concurrent(1, time.Hour), MaxWait: time.Minute,
			Limiter: limiterFunc(func(ctx context.Context, checks []algorithms.Check) error {
				if checks[0].Op == algorithms.Return {
					returned++
				}
				return memory.Allow(ctx, checks)
			}),
		})
		for i := range 3 {
			resp, err := transport.RoundTrip(get(t, context.Background()))
			if err != nil {
				t.Fatalf("request %d: %v", i, err)
			}
			if _, err := resp.Body.Read(make([]byte, 3)); err != nil || returned != i {
				t.Errorf("request %d: %v, %d units came back before the end", i, err, returned)
			}
			if text, err := io.ReadAll(resp.Body); string(text) != " body" || err != nil || returned != i+1 {
				t.Errorf("request %d: got %q, %v, and %d units", i, text, err, returned)
			}
			if i == 1 {
				if err := resp.Body.Close(); err != nil || returned != 2 {
					t.Errorf("got %v, and %d units after Close", err, returned)
				}
			}
		}
	})
}

// TestPartitionsAreSecret: the limiter's key tells partitions apart, and does not contain them.
func TestPartitionsAreSecret(t *testing.T) {
	keys := map[string]bool{}
	transport := newTransport(t, &script{}, &client.Options{
		Partition: func(req *http.Request) string { return req.Header.Get("Authorization") },
		Limit:     algorithms.TokenBucket(100, time.Second),
		Limiter: limiterFunc(func(_ context.Context, checks []algorithms.Check) error {
			keys[checks[0].Key] = true
			checks[0].Decision.Allowed = true
			return nil
		}),
	})
	for _, secret := range []string{"", "sk_live_51SECRET", "sk_live_52SECRET", "sk_live_51SECRET"} {
		req := get(t, context.Background())
		req.Header.Set("Authorization", secret)
		send(t, transport, req)
	}
	for key := range keys {
		if strings.Contains(key, "SECRET") || !strings.HasPrefix(key, "origin=http://api.example.com") {
			t.Errorf("got the key %q", key)
		}
	}
	if len(keys) != 3 || !keys["origin=http://api.example.com"] {
		t.Errorf("got the keys %v, want one without a partition, and two", keys)
	}
}

// TestConcurrentOfAnotherProcess: a unit that another process returns is noticed.
func TestConcurrentOfAnotherProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory, limit := algorithms.NewMemory(nil), algorithms.Concurrent(1, time.Hour)
		other := []algorithms.Check{{Policy: "client", Key: "origin=http://api.example.com", Limit: limit, Cost: 1}}
		if err := memory.Allow(context.Background(), other); err != nil {
			t.Fatal(err)
		}
		time.AfterFunc(10*time.Second, func() {
			other[0].Op = algorithms.Return
			if err := memory.Allow(context.Background(), other); err != nil {
				t.Error(err)
			}
		})
		begun := time.Now()
		send(t, newTransport(t, &script{}, &client.Options{Limiter: memory, Limit: limit}), get(t, context.Background()))
		if got := time.Since(begun); got < 10*time.Second || got > 11*time.Second {
			t.Errorf("sent after %v, want 10s", got)
		}
	})
}

// TestUpgrade: the body of 101 Switching Protocols can be written to.
func TestUpgrade(t *testing.T) {
	written := &bytes.Buffer{}
	transport := newTransport(t, roundTripper(func(*http.Request) (*http.Response, error) {
		resp := response(http.StatusSwitchingProtocols)
		resp.Body = struct {
			io.ReadCloser
			io.Writer
		}{http.NoBody, written}
		return resp, nil
	}), &client.Options{Limiter: algorithms.NewMemory(nil), Limit: algorithms.Concurrent(1, time.Hour)})
	resp, err := transport.RoundTrip(get(t, context.Background()))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := resp.Body.(io.ReadWriteCloser).Write([]byte("frame")); err != nil || written.String() != "frame" {
		t.Errorf("got %q, %v", written, err)
	}
	_ = resp.Body.Close() // it holds nothing
}
