// Tests of programs whose observers, log handlers or functions fail.

package tests

import (
	"context"
	"log/slog"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/middleware"
)

// TestPanicsOfObservers: a panic at any event is logged, ends no request, and keeps no unit.
func TestPanicsOfObservers(t *testing.T) {
	for _, kind := range []ratelimit.EventKind{ratelimit.Registered, ratelimit.Decided, ratelimit.Settled, ratelimit.Unregistered} {
		t.Run(kind.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				log, next := new(logRecords), new(eventLog)
				panicking := ratelimit.ObserverFunc(func(_ context.Context, e ratelimit.Event) {
					if e.Kind == kind {
						panic("on purpose")
					}
				})
				memory, p := newMemory(t), byIP("streams", algorithms.Concurrent(5, 30*time.Second))
				o := &ratelimit.Options{Logger: log.logger(), Observers: []ratelimit.Observer{panicking, next}}
				m := newMiddleware(t, sharing(memory), o, p)
				for range 20 {
					if w := record(m.Handler(ok), from("192.0.2.1")); w.Code != http.StatusOK {
						t.Fatalf("got %d, want 200", w.Code)
					}
					synctest.Wait()
				}
				if err := m.Update(p); err != nil {
					t.Error(err)
				}
				if err := m.Close(t.Context()); err != nil {
					t.Error(err)
				}
				if got := left(t, memory, p, "ip=192.0.2.1"); got != 5 {
					t.Errorf("got %d units left, want all 5", got)
				}
				if got := log.lines(); len(got) != 1 || !strings.Contains(got[0], "panic of an observer") || !strings.Contains(got[0], "on purpose") {
					t.Errorf("got %q, want one line", got)
				}
				if len(next.of(kind)) == 0 {
					t.Error("the next observer did not receive the event")
				}
			})
		})
	}
}

// TestPanicOfChargeIf: the request counts, is logged, and the other policy of the request settles.
func TestPanicOfChargeIf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log, memory := new(logRecords), newMemory(t)
		failing, other := byIP("failing", hourly), byIP("other", hourly)
		failing.ChargeIf = func(int) bool { panic("on purpose") }
		other.ChargeIf = func(int) bool { return false }
		h := newMiddleware(t, memory, &ratelimit.Options{Logger: log.logger()}, failing, other).Handler(ok)
		before := left(t, memory, other, "ip=192.0.2.1")
		if w := record(h, from("192.0.2.1")); w.Code != http.StatusOK {
			t.Errorf("got %d, want 200", w.Code)
		}
		if got := left(t, memory, failing, "ip=192.0.2.1"); got != before-1 {
			t.Errorf("got %d left of the policy that failed, want %d", got, before-1)
		}
		if got := left(t, memory, other, "ip=192.0.2.1"); got != before {
			t.Errorf("got %d left of the other, want %d", got, before)
		}
		if got := log.lines(); len(got) != 1 || !strings.Contains(got[0], "policy=failing") || !strings.Contains(got[0], "on purpose") {
			t.Errorf("got %q, want one line", got)
		}
	})
}

// A badHandler is a log handler that hangs or panics.
type badHandler struct {
	slog.Handler
	handle func()
}

func (badHandler) Enabled(context.Context, slog.Level) bool { return true }
func (h badHandler) Handle(context.Context, slog.Record) error {
	h.handle()
	return nil
}

// TestBadLogHandlers: no request waits for a handler of logs, or ends with it, and Close waits two seconds at most.
func TestBadLogHandlers(t *testing.T) {
	hangs := make(chan struct{})
	for name, handle := range map[string]func(){"panics": func() { panic("on purpose") }, "hangs": func() { <-hangs }} {
		synctest.Test(t, func(t *testing.T) {
			hangs = make(chan struct{})
			m := newMiddleware(t, broken(errDown), &ratelimit.Options{Logger: slog.New(badHandler{handle: handle})}, modes(algorithms.FailClosed)...)
			began := time.Now()
			for range 100 {
				if w := record(m.Handler(ok), from("192.0.2.1")); w.Code != http.StatusServiceUnavailable {
					t.Fatalf("%s: got %d, want 503", name, w.Code)
				}
			}
			if waited := time.Since(began); waited != 0 {
				t.Errorf("%s: the requests waited %v", name, waited)
			}
			if err := m.Close(t.Context()); err != nil || time.Since(began) > 2*time.Second {
				t.Errorf("%s: Close took %v, %v", name, time.Since(began), err)
			}
			close(hangs)
			synctest.Wait()
		})
	}
}

// TestNoisyPolicyHidesNoOther: each policy's trouble has lines of its own.
func TestNoisyPolicyHidesNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := new(logRecords)
		bad := func(name string) ratelimit.Policy {
			p := byIP(name, plenty)
			p.LimitOf = func(*http.Request) (algorithms.Limit, error) { return algorithms.TokenBucket(-1, time.Second), nil }
			return p
		}
		h := newMiddleware(t, newMemory(t), &ratelimit.Options{Logger: log.logger()}, bad("first"), bad("second")).Handler(ok)
		lines := make(map[string]int)
		for range 60 {
			record(h, from("192.0.2.1"))
			for _, line := range log.lines() {
				for _, policy := range []string{"first", "second"} {
					if strings.Contains(line, "policy="+policy) {
						lines[policy]++
					}
				}
			}
			time.Sleep(time.Second)
		}
		if lines["first"] != 6 || lines["second"] != 6 {
			t.Errorf("got %v lines in a minute, want 6 of each", lines)
		}
	})
}

// TestRollingUpdateIsQuiet: two Middlewares may have one policy, and change it one after the other.
func TestRollingUpdateIsQuiet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log, memory := new(logRecords), newMemory(t)
		o := &ratelimit.Options{Logger: log.logger()}
		a, b := newMiddleware(t, memory, o, byIP("p", hourly)), newMiddleware(t, memory, o, byIP("p", hourly))
		for _, m := range []*ratelimit.Middleware{a, b} {
			if err := m.Update(byIP("p", plenty)); err != nil {
				t.Error(err)
			}
			record(m.Handler(ok), from("192.0.2.1"))
		}
		if got := findings(a) + findings(b) + strings.Join(log.lines(), ""); got != "" {
			t.Errorf("got %q, want nothing", got)
		}
	})
}

// TestObserverEndsItsGoroutine: a failing test in an observer ends neither the process nor later events.
func TestObserverEndsItsGoroutine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ends, seen := true, new(eventLog)
		exits := ratelimit.ObserverFunc(func(_ context.Context, e ratelimit.Event) {
			if ends && e.Kind == ratelimit.Registered {
				ends = false
				runtime.Goexit()
			}
		})
		m := newMiddleware(t, newMemory(t), &ratelimit.Options{Observers: []ratelimit.Observer{seen}}, byIP("p", hourly))
		var other *ratelimit.Middleware
		go func() {
			o := &ratelimit.Options{Observers: []ratelimit.Observer{exits, seen}}
			other = newMiddleware(t, newMemory(t), o, byIP("p", hourly))
		}()
		synctest.Wait()
		if other != nil || ends {
			t.Error("the goroutine has not ended")
		}
		if err := m.Update(byIP("p", plenty)); err != nil || len(seen.of(ratelimit.Registered)) != 2 {
			t.Errorf("got %v and %d events, want the two of the other Middleware", err, len(seen.of(ratelimit.Registered)))
		}
	})
}

// TestCloseWritesLines: Close waits for the lines of the log, also if its context has ended.
func TestCloseWritesLines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		written := 0
		slow := slog.New(badHandler{handle: func() { time.Sleep(50 * time.Millisecond); written++ }})
		m := newMiddleware(t, broken(errDown), &ratelimit.Options{Logger: slow}, modes(algorithms.FailClosed)...)
		record(m.Handler(ok), from("192.0.2.1"))
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		_ = m.Close(ended) // its error is not the subject
		if written != 1 {
			t.Errorf("got %d lines after Close, want 1", written)
		}
	})
}
