package tests

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/middleware"
)

// slowToSettle takes its time for settlements.
func slowToSettle(l algorithms.Limiter, wait func(context.Context) error) algorithms.Limiter {
	return limiterFunc(func(ctx context.Context, checks []algorithms.Check) error {
		if op := checks[0].Op; op == algorithms.Return || op == algorithms.Force {
			if err := wait(ctx); err != nil {
				return err
			}
		}
		return l.Allow(ctx, checks)
	})
}

// TestSettlementsDoNotHoldResponses, and Close waits for them.
func TestSettlementsDoNotHoldResponses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory, p, seen := newStill(t), lateByIP("tokens", daily, 10), new(eventLog)
		limiter := slowToSettle(memory, func(context.Context) error { time.Sleep(800 * ms); return nil })
		m := newMiddleware(t, limiter, &ratelimit.Options{Observers: []ratelimit.Observer{seen}}, p)
		h, start := m.Handler(settling(t, "tokens", 4)), time.Now()
		for range 3 {
			record(h, from("192.0.2.1"))
		}
		if took := time.Since(start); took != 0 {
			t.Errorf("three responses took %v, want no time", took)
		}
		if err := m.Close(context.Background()); err != nil || time.Since(start) != 800*ms {
			t.Errorf("Close took %v, %v; want the 800 ms of the settlements", time.Since(start), err)
		}
		if got := left(t, memory, p, "ip=192.0.2.1"); got != 88 {
			t.Errorf("got %d left, want 88", got)
		}
		settled := seen.of(ratelimit.Settled)
		if len(settled) != 3 {
			t.Fatalf("got %d settlements observed, want 3", len(settled))
		}
		for _, e := range settled {
			if e.Policy != "tokens" || e.Elapsed != 800*ms || e.Err != nil {
				t.Errorf("got %+v, want tokens, 800 ms and no error", e)
			}
		}
	})
}

// TestCloseTwice: a request that ends after the first Close is settled, and the second Close waits for it.
func TestCloseTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory, p := newMemory(t), lateByIP("tokens", daily, 10)
		m := newMiddleware(t, slowToSettle(memory, func(context.Context) error { time.Sleep(800 * ms); return nil }), nil, p)
		h, ended := m.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			time.Sleep(5 * time.Second)
			settling(t, "tokens", 30)(w, r)
		})), make(chan struct{})
		go func() {
			record(h, from("192.0.2.1"))
			close(ended)
		}()
		synctest.Wait()
		start := time.Now()
		if err := m.Close(context.Background()); err != nil || time.Since(start) != 0 {
			t.Errorf("Close took %v, %v; want no time: handlers are Shutdown's", time.Since(start), err)
		}
		<-ended
		ctx, cancel := context.WithTimeout(context.Background(), 100*ms)
		defer cancel()
		if err := m.Close(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want the context's error", err)
		}
		if err := m.Close(context.Background()); err != nil || time.Since(start) != 5800*ms {
			t.Errorf("Close ended after %v, %v; want the 800 ms of the settlement", time.Since(start), err)
		}
		if got := left(t, memory, p, "ip=192.0.2.1"); got != 70 {
			t.Errorf("got %d left, want 70", got)
		}
	})
}

// TestTooManySettlements: waiting settlements are bounded. Units of further ones stay charged, and are counted.
func TestTooManySettlements(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory, p, seen := newStill(t), lateByIP("tokens", algorithms.TokenBucket(1_000_000, time.Hour), 10), new(eventLog)
		release := make(chan struct{})
		m := newMiddleware(t, slowToSettle(memory, func(context.Context) error { <-release; return nil }),
			&ratelimit.Options{Observers: []ratelimit.Observer{seen}, Logger: quiet}, p)
		h := m.Handler(settling(t, "tokens", 4))
		for range 10_032 { // that wait, and that are being made
			record(h, from("192.0.2.1"))
			synctest.Wait()
		}
		busy := m.Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			if err := ratelimit.Settle(r.Context(), 30, "tokens"); !errors.Is(err, ratelimit.ErrNotSettled) {
				t.Errorf("got %v, want ErrBusy", err)
			}
		}))
		record(h, from("192.0.2.1"))
		record(busy, from("192.0.2.1"))
		if dropped := droppedOf(seen); len(dropped) != 3 || dropped[0].Policy != "tokens" {
			t.Errorf("got %d dropped, want 3: a return, and a force that was tried twice", len(dropped))
		}
		close(release)
		if err := m.Close(context.Background()); err != nil {
			t.Error(err)
		}
		if got, want := left(t, memory, p, "ip=192.0.2.1"), int64(1_000_000-4*10_032-2*10); got != want {
			t.Errorf("got %d left, want %d", got, want)
		}
	})
}

// droppedOf returns the settlements that were dropped, because too many were waiting.
func droppedOf(seen *eventLog) []ratelimit.Event {
	return slices.DeleteFunc(seen.of(ratelimit.Settled), func(e ratelimit.Event) bool { return !errors.Is(e.Err, ratelimit.ErrNotSettled) })
}

// TestSettlementFails after a second: its units stay charged, which is observed and logged.
func TestSettlementFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory, p, seen, log := newStill(t), lateByIP("tokens", daily, 10), new(eventLog), new(logRecords)
		limiter := slowToSettle(memory, func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() })
		m := newMiddleware(t, limiter, &ratelimit.Options{Observers: []ratelimit.Observer{seen}, Logger: log.logger()}, p)
		record(m.Handler(settling(t, "tokens", 4)), from("192.0.2.1"))
		if err := m.Close(context.Background()); err != nil {
			t.Error(err)
		}
		settled := seen.of(ratelimit.Settled)
		if len(settled) != 1 || settled[0].Elapsed != time.Second || !errors.Is(settled[0].Err, context.DeadlineExceeded) {
			t.Errorf("got %+v, want a failure after a second", settled)
		}
		if got := left(t, memory, p, "ip=192.0.2.1"); got != 90 || len(log.lines()) != 1 {
			t.Errorf("got %d left, want 90 and a line in the log", got)
		}
	})
}

// TestOnlySettlementsAreCounted: renewals and denials towards a ban wait in the same queue, and are not counted.
func TestOnlySettlementsAreCounted(t *testing.T) {
	for name, err := range map[string]error{"made": nil, "failed": errDown} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				memory, seen, renewed, struck := newMemory(t), new(eventLog), 0, 0
				var mu sync.Mutex
				busy := make(chan struct{})
				limiter := limiterFunc(func(ctx context.Context, checks []algorithms.Check) error {
					mu.Lock()
					defer mu.Unlock()
					switch c := &checks[0]; {
					case c.Op == algorithms.Renew:
						renewed++
						return errors.Join(err, memory.Allow(ctx, checks))
					case strings.HasSuffix(c.Policy, "~strikes"):
						struck++
						if struck > 10 {
							mu.Unlock()
							<-busy
							mu.Lock()
						}
						return errors.Join(err, memory.Allow(ctx, checks))
					}
					return memory.Allow(ctx, checks)
				})
				streams, logins := byIP("streams", algorithms.Concurrent(1, 30*time.Second)), byIP("logins", hourly)
				streams.Skip = func(r *http.Request) bool { return r.Header.Get("Name") == "" }
				logins.Limit, logins.Ban = algorithms.Nobody(), &ratelimit.Ban{Denials: 1000, Within: time.Hour, For: time.Minute}
				logins.Skip = func(r *http.Request) bool { return !streams.Skip(r) }
				m := newMiddleware(t, limiter, &ratelimit.Options{Observers: []ratelimit.Observer{seen}, Logger: quiet}, streams, logins)
				s := newStreams(m)
				s.begin("a")
				time.Sleep(time.Minute + time.Second)
				for range 10 {
					check(t, m, from("192.0.2.1"))
					synctest.Wait()
				}
				if n := len(seen.of(ratelimit.Settled)); renewed != 6 || struck != 10 || n != 0 {
					t.Errorf("got %d renewals, %d strikes and %d settlements; want 6, 10 and none", renewed, struck, n)
				}
				s.stop("a")
				if settled := seen.of(ratelimit.Settled); len(settled) != 1 || settled[0].Policy != "streams" || settled[0].Err != nil {
					t.Errorf("got %+v, want the stream's return", settled)
				}
				for range 6_000 { // waiting settlements, and further ones without room
					check(t, m, from("192.0.2.1"))
				}
				synctest.Wait()
				close(busy)
				s.wg.Wait()
				if err := m.Close(context.Background()); err != nil {
					t.Error(err)
				}
				if settled, dropped := len(seen.of(ratelimit.Settled)), len(droppedOf(seen)); struck < 5_000 || settled != 1 || dropped != 0 {
					t.Errorf("got %d strikes, %d settlements and %d dropped; want 5 000 or so, the one, and none", struck, settled, dropped)
				}
			})
		})
	}
}
