// Attempts that the pace or the limiter refuses, and requests that panic.

package client_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/middleware/client"
)

// TestRefusedRetryReturnsTheDenial: if the limiter refuses the next attempt, after the wait of the denial, the denial is the
// caller's, with its hint and its body. If the context ends, its error is.
func TestRefusedRetryReturnsTheDenial(t *testing.T) {
	broken := errors.New("the store is down")
	refuse := func(err error, d algorithms.Decision) algorithms.Limiter {
		calls := 0
		return limiterFunc(func(_ context.Context, checks []algorithms.Check) error {
			if calls++; calls == 1 {
				checks[0].Decision.Allowed = true
				return nil
			}
			checks[0].Decision = d
			return err
		})
	}
	for name, tt := range map[string]struct {
		limiter algorithms.Limiter
		cancel  time.Duration // 0: never
		body    int           // its length
		events  string
		took    time.Duration // besides the random part of the wait
	}{
		"spent":         {algorithms.NewMemory(nil), 0, 8, "gave_up_wait", time.Second},
		"failed":        {refuse(broken, algorithms.Decision{}), 0, 8, "gave_up_request", time.Second},
		"a long body":   {refuse(broken, algorithms.Decision{}), 0, 1 << 20, "gave_up_request", time.Second},
		"ended":         {algorithms.NewMemory(nil), 500 * time.Millisecond, 8, "", 500 * time.Millisecond},
		"ended in line": {refuse(nil, algorithms.Decision{RetryAfter: time.Minute}), 30 * time.Second, 8, "", 30 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				events, text := &eventLog{}, strings.Repeat("x", tt.body)
				sent := &body{Reader: strings.NewReader(text)}
				transport := newTransport(t, roundTripper(func(*http.Request) (*http.Response, error) {
					resp := response(http.StatusTooManyRequests, "Retry-After: 1")
					resp.Body = sent
					return resp, nil
				}), &client.Options{Limiter: tt.limiter, Limit: algorithms.TokenBucket(1, time.Hour), Observers: []client.Observer{events}})
				ctx, cancel := context.WithCancel(context.Background())
				defer cancel()
				if tt.cancel > 0 {
					time.AfterFunc(tt.cancel, cancel)
				}
				begun := time.Now()
				resp, err := transport.RoundTrip(get(t, ctx))
				if took := time.Since(begun); took < tt.took || took > tt.took+500*time.Millisecond || sent.closed == 0 {
					t.Errorf("took %v, want %v, closed %d times", took, tt.took, sent.closed)
				}
				if tt.cancel > 0 {
					if resp != nil || !errors.Is(err, context.Canceled) {
						t.Errorf("got %v, %v, want the context's error", resp, err)
					}
					return
				}
				if err != nil || resp.StatusCode != http.StatusTooManyRequests {
					t.Fatalf("got %v, %v, want the denial", resp, err)
				}
				if wait, ok := client.RetryAfter(resp); wait != time.Second || !ok {
					t.Errorf("got the hint %v, %v", wait, ok)
				}
				got, err := io.ReadAll(resp.Body)
				whole := tt.body <= 64<<10
				if string(got) != text[:min(tt.body, 64<<10)] || (err == nil) != whole || err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
					t.Errorf("got a body of %d bytes, %v", len(got), err)
				}
				last := events.events[len(events.events)-1]
				if want := "registered sent waited_retry " + tt.events; events.kinds() != want || last.Response != resp || tt.events == "gave_up_wait" && last.Err != nil {
					t.Errorf("got %s, the last %+v, want %s", events.kinds(), last, want)
				}
			})
		})
	}
}

// TestRefusedByALongerHold: during the wait of a denied request, another denial states a longer wait.
func TestRefusedByALongerHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n atomic.Int64
		transport := newTransport(t, roundTripper(func(*http.Request) (*http.Response, error) {
			resp := response(http.StatusTooManyRequests, "Retry-After: 5")
			time.Sleep(time.Second)
			if n.Add(1) == 2 {
				time.Sleep(2 * time.Second)
				resp = response(http.StatusTooManyRequests, "Retry-After: 60")
			}
			resp.Body = http.NoBody
			return resp, nil
		}), &client.Options{MaxWait: 30 * time.Second})
		begun := time.Now()
		var wg sync.WaitGroup
		for range 2 {
			wg.Go(func() {
				resp, err := transport.RoundTrip(get(t, context.Background()))
				if err != nil || resp.StatusCode != http.StatusTooManyRequests || time.Since(begun) > 7*time.Second {
					t.Errorf("got %v, %v after %v, want the denial", resp, err, time.Since(begun))
				}
			})
			synctest.Wait()
		}
		wg.Wait()
	})
}

// TestDenialWithoutAWait: a limiter that denies and names no wait admits nothing, and is not asked without a pause.
func TestDenialWithoutAWait(t *testing.T) {
	for _, limit := range []algorithms.Limit{algorithms.TokenBucket(1, time.Second), algorithms.Concurrent(1, time.Second)} {
		synctest.Test(t, func(t *testing.T) {
			asked, s := 0, &script{}
			transport := newTransport(t, s, &client.Options{Limit: limit, Limiter: limiterFunc(func(_ context.Context, checks []algorithms.Check) error {
				if checks[0].Op == algorithms.Take {
					asked++
					checks[0].Decision.Allowed = asked == 10
				}
				return nil
			})})
			begun := time.Now()
			send(t, transport, get(t, context.Background()))
			if asked != 10 || time.Since(begun) < 9*time.Millisecond {
				t.Errorf("%v: sent after %v and %d questions, want the tenth", limit, time.Since(begun), asked)
			}
		})
	}
}

// TestBodyOfNil: a base that returns no body, as mocks do, has an empty one.
func TestBodyOfNil(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := 0
		transport := newTransport(t, roundTripper(func(*http.Request) (*http.Response, error) {
			if n++; n == 1 {
				return response(http.StatusTooManyRequests), nil
			}
			return response(http.StatusOK), nil
		}), &client.Options{Limiter: algorithms.NewMemory(nil), Limit: algorithms.Concurrent(1, time.Minute)})
		if resp := send(t, transport, get(t, context.Background())); resp.Body != http.NoBody || n != 2 {
			t.Errorf("got the body %v after %d requests", resp.Body, n)
		}
	})
}

// TestPanicsEndTheirTurn: a request that panics leaves the queue, ends its turn in the pace, and returns its unit.
func TestPanicsEndTheirTurn(t *testing.T) {
	for _, where := range []string{"base", "limiter"} {
		for _, limit := range []algorithms.Limit{algorithms.Concurrent(1, time.Hour), algorithms.TokenBucket(1, time.Second)} {
			synctest.Test(t, func(t *testing.T) {
				memory, armed, asked := algorithms.NewMemory(nil), true, 0
				burst := func(at string) {
					if armed && at == where {
						armed = false
						panic("on purpose")
					}
				}
				transport := newTransport(t, roundTripper(func(*http.Request) (*http.Response, error) {
					burst("base")
					return response(http.StatusOK), nil
				}), &client.Options{
					Pace: true, Limit: limit,
					Limiter: limiterFunc(func(ctx context.Context, checks []algorithms.Check) error {
						burst("limiter")
						if asked++; asked == 1 { // so that there is a wait
							checks[0].Decision.RetryAfter = time.Second
							return nil
						}
						return memory.Allow(ctx, checks)
					}),
				})
				func() {
					defer func() {
						if recover() == nil {
							t.Errorf("%s, %v: did not panic", where, limit)
						}
					}()
					_, _ = transport.RoundTrip(get(t, context.Background())) // it panics
				}()
				begun := time.Now()
				send(t, transport, get(t, context.Background()))
				if got := time.Since(begun); got > 2*time.Second {
					t.Errorf("%s, %v: the next request waited %v", where, limit, got)
				}
			})
		}
	}
}

// TestPanicsOfObservers: a panic at any event ends no request, keeps no unit, and is logged once.
func TestPanicsOfObservers(t *testing.T) {
	for _, kind := range []client.EventKind{client.Registered, client.Sent, client.Waited, client.GaveUp} {
		synctest.Test(t, func(t *testing.T) {
			logged, before := new(strings.Builder), slog.Default()
			slog.SetDefault(slog.New(slog.NewTextHandler(logged, nil)))
			defer slog.SetDefault(before)
			memory, limit, next := algorithms.NewMemory(nil), algorithms.Concurrent(1, time.Hour), new(eventLog)
			panicking := client.ObserverFunc(func(_ context.Context, e client.Event) {
				if e.Kind == kind {
					panic("on purpose")
				}
			})
			s := &script{responses: []*http.Response{
				response(http.StatusTooManyRequests, "Retry-After: 1"), response(http.StatusTooManyRequests, "Retry-After: 9999"),
			}}
			transport := newTransport(t, s, &client.Options{Limiter: memory, Limit: limit, Observers: []client.Observer{panicking, next}})
			for _, want := range []int{http.StatusTooManyRequests, http.StatusOK} {
				resp := send(t, transport, get(t, context.Background()))
				if resp.StatusCode != want {
					t.Errorf("%v: got %d, want %d", kind, resp.StatusCode, want)
				}
				time.Sleep(3 * time.Hour) // until the stated wait has ended
			}
			synctest.Wait()
			if got := strings.Count(logged.String(), "on purpose"); got == 0 || !strings.Contains(logged.String(), "panic of a client's observer") {
				t.Errorf("%v: got the log %q", kind, logged)
			}
			if !strings.Contains(next.kinds(), kind.String()) {
				t.Errorf("%v: the next observer did not receive the event: %s", kind, next.kinds())
			}
		})
	}
}

// TestErrorsNameTheCause: an error says for what the request waited, and for how long.
func TestErrorsNameTheCause(t *testing.T) {
	for want, o := range map[string]*client.Options{
		"waited 4s for the server, at least 0s more are needed, and 0s are left": {Pace: true, MaxWait: 4 * time.Second},
		"waited 1m0s for the limiter, at least 0s more are needed, and 0s are left": {
			MaxWait: time.Minute, Limiter: algorithms.NewMemory(nil), Limit: algorithms.Concurrent(1, time.Hour),
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			transport := newTransport(t, roundTripper(func(*http.Request) (*http.Response, error) {
				time.Sleep(time.Hour)
				return response(http.StatusOK), nil
			}), o)
			first := get(t, context.Background())
			go func() { _, _ = transport.RoundTrip(first) }()
			synctest.Wait()
			if _, err := transport.RoundTrip(get(t, context.Background())); !errors.Is(err, client.ErrWait) || !strings.Contains(err.Error(), want) {
				t.Errorf("got %v, want %q", err, want)
			}
			time.Sleep(time.Hour) // the first one ends
		})
	}
}
