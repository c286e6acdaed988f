// What ends a hold before its time, and which routes it holds.

package client_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/penstock-go/penstock/middleware/client"
)

// A site answers by the path of a request, and notes when each path was asked.
type site struct {
	mu      sync.Mutex
	arrived map[string][]time.Time
	answer  func(path string, nth int) *http.Response // nth counts from 1, for each path
}

func (s *site) RoundTrip(req *http.Request) (*http.Response, error) {
	s.mu.Lock()
	if s.arrived == nil {
		s.arrived = map[string][]time.Time{}
	}
	path := req.URL.Path
	s.arrived[path] = append(s.arrived[path], time.Now())
	nth := len(s.arrived[path])
	s.mu.Unlock()
	time.Sleep(10 * time.Millisecond)
	resp := s.answer(path, nth)
	if resp == nil {
		return nil, errors.New("connection reset")
	}
	resp.Body = http.NoBody
	return resp, nil
}

func getPath(t testing.TB, ctx context.Context, path string) *http.Request {
	t.Helper()
	req := get(t, ctx)
	req.URL.Path = path
	return req
}

// TestSuccessLiftsAStatedWait: a server states a wait of eleven days and is healthy from then on. One request in each longest
// wait is sent, and its success lets the others go.
func TestSuccessLiftsAStatedWait(t *testing.T) {
	for _, o := range []client.Options{{MaxWait: time.Second}, {MaxWait: time.Second, Pace: true}} {
		synctest.Test(t, func(t *testing.T) {
			s := denials(1, "Retry-After: 1000000")
			transport, failed := newTransport(t, s, &o), 0
			for range 1500 { // in 15 s
				if resp, err := transport.RoundTrip(get(t, context.Background())); err == nil {
					_ = resp.Body.Close() // a script's body does not fail
				} else if failed++; !errors.Is(err, client.ErrWait) {
					t.Error(err)
				}
				time.Sleep(10 * time.Millisecond)
			}
			if failed < 95 || failed > 101 || len(s.arrived) != 1500-failed {
				t.Errorf("pace %v: %d failed, %d were sent, want 100 failures in the first second", o.Pace, failed, len(s.arrived))
			}
		})
	}
}

// TestAnotherDenialKeepsTheWait: a denied trial lifts nothing.
func TestAnotherDenialKeepsTheWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := denials(100, "Retry-After: 1000000")
		transport := newTransport(t, s, &client.Options{MaxWait: time.Minute})
		for range 100 {
			resp, err := transport.RoundTrip(get(t, context.Background()))
			if err == nil {
				_ = resp.Body.Close() // a script's body does not fail
			}
			time.Sleep(6 * time.Second)
		}
		if len(s.arrived) != 10 {
			t.Errorf("%d requests were sent in ten minutes, want one a minute", len(s.arrived))
		}
	})
}

// TestUnixTimeInRetryAfter: 1000000000 is an instant of the year 2001, not 31 years.
func TestUnixTimeInRetryAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)))
		for value, want := range map[string]time.Duration{"1000000000": 850 * time.Millisecond, "1795262430": 30 * time.Second} {
			s := denials(2, "Date: Sat, 21 Nov 2026 12:00:00 GMT", "Retry-After: "+value)
			send(t, newTransport(t, s, nil), get(t, context.Background()))
			if gap := s.gaps()[1]; gap < want || gap > want+2*time.Second {
				t.Errorf("%s: waited %v, want %v", value, gap, want)
			}
		}
	})
}

// TestWaitsAreBounded: no wait is longer than 14 days, whatever servers state.
func TestWaitsAreBounded(t *testing.T) {
	const most = 14 * 24 * time.Hour
	for _, line := range []string{"Retry-After: 1209600", "Retry-After: 1209601", "Retry-After: 99999999", "Retry-After: Sat, 01 Jan 2050 00:00:00 GMT"} {
		synctest.Test(t, func(t *testing.T) {
			s := denials(1, line)
			send(t, newTransport(t, s, &client.Options{MaxWait: 100 * 24 * time.Hour}), get(t, context.Background()))
			if gap := s.gaps()[0]; gap < most || gap > most+time.Second {
				t.Errorf("%s: waited %v, want %v", line, gap, most)
			}
		})
	}
}

// TestStatedWaitOfARoute: a denied route keeps its wait. The others wait for one answer at most.
func TestStatedWaitOfARoute(t *testing.T) {
	for _, o := range []client.Options{{}, {Pace: true}} {
		synctest.Test(t, func(t *testing.T) {
			s := &site{answer: func(path string, nth int) *http.Response {
				if path == "/bad" && nth == 1 {
					return response(http.StatusTooManyRequests, "Retry-After: 500")
				}
				return response(http.StatusOK)
			}}
			transport := newTransport(t, s, &o)
			short, cancel := context.WithTimeout(context.Background(), 3*time.Second)
			defer cancel()
			if resp := send(t, transport, getPath(t, short, "/bad")); resp.StatusCode != http.StatusTooManyRequests {
				t.Fatalf("got %d", resp.StatusCode)
			}
			begun := time.Now()
			var wg sync.WaitGroup
			wg.Go(func() { send(t, transport, getPath(t, context.Background(), "/bad")) })
			for range 20 {
				wg.Go(func() {
					send(t, transport, getPath(t, short, "/good"))
					if took := time.Since(begun); took > 100*time.Millisecond {
						t.Errorf("pace %v: another route waited %v", o.Pace, took)
					}
				})
			}
			synctest.Wait()
			if _, err := transport.RoundTrip(getPath(t, short, "/bad")); !errors.Is(err, client.ErrWait) || time.Since(begun) > 0 {
				t.Errorf("pace %v: the denied route: got %v after %v, want an error at once", o.Pace, err, time.Since(begun))
			}
			for range 499 {
				time.Sleep(time.Second)
				before := time.Now()
				send(t, transport, getPath(t, context.Background(), "/good"))
				if took := time.Since(before); took > 20*time.Millisecond {
					t.Errorf("pace %v: another route waited %v", o.Pace, took)
				}
			}
			wg.Wait()
			if at := s.arrived["/bad"]; len(at) != 2 || at[1].Sub(at[0]) < 500*time.Second || at[1].Sub(at[0]) > 502*time.Second {
				t.Errorf("pace %v: the denied route was asked at %v, want once more after 500 s", o.Pace, at)
			}
		})
	}
}

// TestStatedWaitOfAnOrigin: where all routes share a limit, few of them are denied before the others wait.
func TestStatedWaitOfAnOrigin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun, denied := time.Now(), 0
		var mu sync.Mutex
		s := &site{answer: func(string, int) *http.Response {
			mu.Lock()
			defer mu.Unlock()
			left := 60 - int(time.Since(begun)/time.Second)
			if left <= 0 {
				return response(http.StatusOK)
			}
			denied++
			return response(http.StatusTooManyRequests, fmt.Sprint("Retry-After: ", left))
		}}
		transport := newTransport(t, s, nil)
		var wg sync.WaitGroup
		for i := range 100 {
			wg.Go(func() { send(t, transport, getPath(t, context.Background(), "/route-"+strings.Repeat("x", i))) })
			synctest.Wait()
			time.Sleep(20 * time.Millisecond)
		}
		wg.Wait()
		if took := time.Since(begun); took < time.Minute || took > 65*time.Second {
			t.Errorf("100 routes took %v", took)
		}
		if denied > 7 { // the first, then after 0, 1, 3, 7, 15 and 31 s
			t.Errorf("%d routes were denied, want at most 7", denied)
		}
	})
}

// TestDeniedRoutes: while several routes are denied, another one waits a second at most for its turn to try, and each denied
// route leaves when its own wait is over.
func TestDeniedRoutes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		waits := map[string]string{"/a": "400", "/b": "30", "/c": "500"}
		s := &site{answer: func(path string, nth int) *http.Response {
			if wait, ok := waits[path]; ok && nth == 1 {
				return response(http.StatusTooManyRequests, "Retry-After: "+wait)
			}
			return response(http.StatusOK)
		}}
		transport := newTransport(t, s, nil)
		var wg sync.WaitGroup
		for _, path := range []string{"/a", "/b", "/c"} {
			wg.Go(func() { send(t, transport, getPath(t, context.Background(), path)) })
			time.Sleep(time.Millisecond)
			synctest.Wait()
		}
		time.Sleep(50 * time.Millisecond)
		for range 3 {
			send(t, transport, getPath(t, context.Background(), "/good"))
		}
		// /a is denied, then /b, which tries at once, and /c, which tries a second later. The next trial is 2 s after it.
		if took := time.Since(begun); took > 3500*time.Millisecond {
			t.Errorf("another route waited %v", took)
		}
		wg.Wait()
		for path, wait := range waits {
			at := s.arrived[path]
			if least, _ := time.ParseDuration(wait + "s"); len(at) != 2 || at[1].Sub(at[0]) < least || at[1].Sub(at[0]) > least+2*time.Second {
				t.Errorf("%s was asked at %v, want once more after %v", path, at, least)
			}
		}
	})
}

// TestTrialsWithoutAVerdict: a trial that fails, or that meets another trouble of the server, lets the next one go. If it
// hangs, the next one leaves after 5 s.
func TestTrialsWithoutAVerdict(t *testing.T) {
	for name, tt := range map[string]struct {
		answer func() *http.Response
		want   time.Duration
	}{
		"error": {func() *http.Response { return nil }, 200 * time.Millisecond},
		"503":   {func() *http.Response { return response(http.StatusServiceUnavailable) }, 200 * time.Millisecond},
		"hangs": {func() *http.Response { time.Sleep(time.Minute); return response(http.StatusOK) }, 5200 * time.Millisecond},
	} {
		synctest.Test(t, func(t *testing.T) {
			transport := newTransport(t, &site{answer: func(path string, nth int) *http.Response {
				switch {
				case path == "/bad" && nth == 1:
					return response(http.StatusTooManyRequests, "Retry-After: 500")
				case path == "/strange":
					return tt.answer()
				}
				return response(http.StatusOK)
			}}, &client.Options{Attempts: 2})
			var wg sync.WaitGroup
			wg.Go(func() { send(t, transport, getPath(t, context.Background(), "/bad")) })
			time.Sleep(50 * time.Millisecond)
			begun := time.Now()
			wg.Go(func() { _, _ = transport.RoundTrip(getPath(t, context.Background(), "/strange")) }) // it may fail
			synctest.Wait()
			for range 10 {
				wg.Go(func() {
					send(t, transport, getPath(t, context.Background(), "/good"))
					if took := time.Since(begun); took > tt.want {
						t.Errorf("%s: another route waited %v, want at most %v", name, took, tt.want)
					}
				})
			}
			wg.Wait()
		})
	}
}

// TestRoutes: a method and a path are a route. Segments with a digit are IDs, which routes do not have.
func TestRoutes(t *testing.T) {
	for _, tt := range []struct {
		method, path string
		tries        bool // after GET /users/17/orders was denied
	}{
		{"GET", "/users/17/orders", false}, {"", "/users/17/orders", false}, {"GET", "/users/3f6a-77/orders", false},
		{"GET", "/users/17", true}, {"GET", "/users/me/orders", true}, {"PUT", "/users/17/orders", true}, {"GET", "", true},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := denials(1, "Retry-After: 500")
			transport := newTransport(t, s, &client.Options{MaxWait: time.Minute})
			send(t, transport, getPath(t, context.Background(), "/users/17/orders"))
			req := getPath(t, context.Background(), tt.path)
			req.Method = tt.method
			if _, err := transport.RoundTrip(req); (err == nil) != tt.tries {
				t.Errorf("%q %s: got %v, tries %v", tt.method, tt.path, err, tt.tries)
			}
		})
	}
}
