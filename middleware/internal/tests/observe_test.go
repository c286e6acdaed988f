package tests

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/keyfunc"
	"github.com/penstock-go/penstock/middleware"
)

// logRecords keeps the lines of a logger.
type logRecords struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *logRecords) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *logRecords) logger() *slog.Logger { return slog.New(slog.NewTextHandler(l, nil)) }

// lines returns the lines since the last call. It must be called in a bubble: a goroutine writes the lines.
func (l *logRecords) lines() []string {
	synctest.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	text := strings.TrimSpace(l.buf.String())
	l.buf.Reset()
	if text == "" {
		return nil
	}
	return strings.Split(text, "\n")
}

// TestObserver: every request is decided exactly once, however it ends.
func TestObserver(t *testing.T) {
	closed := modes(algorithms.FailClosed)[0]
	skipped := byIP("p", hourly)
	skipped.Skip = func(*http.Request) bool { return true }
	for _, tt := range []struct {
		name    string
		limiter algorithms.Limiter
		policy  ratelimit.Policy
		r       *http.Request
		status  int // 0: allowed
		err     error
	}{
		{"allowed", newStill(t), byIP("p", hourly), from("192.0.2.1"), 0, nil},
		{"denied", newStill(t), byIP("p", algorithms.Nobody()), from("192.0.2.1"), 403, nil},
		{"skipped", newStill(t), skipped, from("192.0.2.1"), 0, nil},
		{"missing", newStill(t), ratelimit.Policy{Name: "p", Key: apiKey, Limit: hourly}, from("192.0.2.1"), 401, keyfunc.ErrMissing},
		{"unknown", newStill(t), ratelimit.Policy{Name: "p", Key: apiKey, Limit: hourly}, withKeys("guess"), 401, keyfunc.ErrUnknown},
		{"malformed", newStill(t), ratelimit.Policy{Name: "p", Key: apiKey, Limit: hourly}, withKeys("a b"), 400, keyfunc.ErrMalformed},
		{"the function's error", newStill(t), ratelimit.Policy{Name: "p", Key: failing, Limit: hourly}, from("192.0.2.1"), 500, errOurs},
		{"passed", broken(errDown), byIP("p", hourly), from("192.0.2.1"), 0, errDown},
		{"refused", broken(errDown), closed, from("192.0.2.1"), 503, errDown},
	} {
		t.Run(tt.name, func(t *testing.T) {
			seen := new(eventLog)
			o := &ratelimit.Options{Observers: []ratelimit.Observer{seen}, Logger: quiet}
			m := newMiddleware(t, tt.limiter, o, tt.policy)
			record(m.Handler(ok), tt.r)
			v, _ := m.Check(tt.r) // its error is not what is tested
			decided := seen.of(ratelimit.Decided)
			if len(decided) != 2 || len(seen.events) != 3 {
				t.Fatalf("got %d events, %d of them Decided, want 2 for 2 requests, beside Registered", len(seen.events), len(decided))
			}
			for _, e := range decided {
				if e.Verdict.Allowed != (tt.status == 0) || e.Verdict.Status != tt.status || !errors.Is(e.Err, tt.err) ||
					tt.err == nil && e.Err != nil || e.Elapsed <= 0 || e.Middleware != m ||
					(e.Policy != "") != (e.Err != nil && len(e.Verdict.Policies) == 0) {
					t.Errorf("got %+v, want status %d and error %v", e, tt.status, tt.err)
				}
			}
			if v.Status != tt.status {
				t.Errorf("got status %d of Check, want %d", v.Status, tt.status)
			}
		})
	}
}

// TestElapsed: observers hear how long each decision took, however long the process has run.
func TestElapsed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		seen, took := new(eventLog), 7*time.Millisecond
		slow := limiterFunc(func(_ context.Context, checks []algorithms.Check) error {
			time.Sleep(took)
			for i := range checks {
				checks[i].Decision = algorithms.Decision{Allowed: true, Source: algorithms.Shared}
			}
			return nil
		})
		m := newMiddleware(t, slow, &ratelimit.Options{Observers: []ratelimit.Observer{seen}}, byIP("p", hourly))
		for range 3 {
			time.Sleep(time.Hour)
			record(m.Handler(ok), from("192.0.2.1"))
		}
		decided := seen.of(ratelimit.Decided)
		if len(decided) != 3 {
			t.Fatalf("got %d decisions, want 3", len(decided))
		}
		for i, e := range decided {
			if e.Elapsed != took {
				t.Errorf("request %d: got %s, want %s", i, e.Elapsed, took)
			}
		}
	})
}

// TestObserverContext: it is the request's, for traces.
func TestObserverContext(t *testing.T) {
	type key struct{}
	var got any
	o := &ratelimit.Options{Observers: []ratelimit.Observer{ratelimit.ObserverFunc(func(ctx context.Context, _ ratelimit.Event) { got = ctx.Value(key{}) })}}
	r := from("192.0.2.1")
	record(newMiddleware(t, newStill(t), o, byIP("p", hourly)).Handler(ok), r.WithContext(context.WithValue(r.Context(), key{}, "trace")))
	if got != "trace" {
		t.Errorf("got %v, want the request's context", got)
	}
}

func TestEventKinds(t *testing.T) {
	for kind, want := range map[ratelimit.EventKind]string{
		0: "unknown", ratelimit.Decided: "decided", ratelimit.Registered: "registered", ratelimit.Abandoned: "abandoned", 99: "unknown",
	} {
		if got := kind.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// TestLogger: trouble is logged at most once per ten seconds, with the number of suppressed lines, and without keys.
func TestLogger(t *testing.T) {
	negative, shadow := byIP("p", hourly), byIP("shadow", hourly)
	negative.Cost, shadow.Shadow = costOf(-1), true
	for _, tt := range []struct {
		name     string
		limiter  func(*testing.T) algorithms.Limiter
		policies []ratelimit.Policy
		want     string
	}{
		{"passed", func(*testing.T) algorithms.Limiter { return broken(errDown) }, modes(algorithms.FailLocal, algorithms.FailOpen),
			`msg="ratelimit: fail-open admission" policy=a error=`},
		{"passed, with a shadow policy", func(*testing.T) algorithms.Limiter { return broken(errDown) }, []ratelimit.Policy{shadow, byIP("p", hourly)},
			`msg="ratelimit: fail-open admission" policy=p error=`},
		{"passed, in shadow", func(*testing.T) algorithms.Limiter { return broken(errDown) }, []ratelimit.Policy{shadow},
			`msg="ratelimit: fail-open admission" policy=shadow error=`},
		{"refused", func(*testing.T) algorithms.Limiter { return broken(errDown) }, modes(algorithms.FailClosed),
			`msg="ratelimit: fail-closed refusal" policy=a error=`},
		{"a mistake", func(t *testing.T) algorithms.Limiter { return newMemory(t) }, []ratelimit.Policy{negative},
			`msg="ratelimit: invalid check" error=`},
		{"the key function's error", func(t *testing.T) algorithms.Limiter { return newMemory(t) },
			[]ratelimit.Policy{{Name: "p", Key: failing, Limit: hourly}}, `msg="ratelimit: key function failure" policy=p error=`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				log := new(logRecords)
				h := newMiddleware(t, tt.limiter(t), &ratelimit.Options{Logger: log.logger()}, tt.policies...).Handler(ok)
				burst := func() []string {
					for i := range 100 {
						record(h, from(fmt.Sprintf("192.0.2.%d", i)))
					}
					return log.lines()
				}
				lines := burst()
				if len(lines) != 1 || !strings.Contains(lines[0], "level=WARN "+tt.want) {
					t.Fatalf("got %d lines of 100 requests, want one warning:\n%s", len(lines), strings.Join(lines, "\n"))
				}
				time.Sleep(10*time.Second - time.Nanosecond)
				if got := burst(); len(got) != 0 {
					t.Errorf("got %q less than 10 s later, want nothing", got)
				}
				time.Sleep(time.Nanosecond)
				again := burst()
				if len(again) != 1 || !strings.Contains(again[0], "suppressed=199") {
					t.Errorf("got %q 10 s later, want a line that counts 199", again)
				}
				for _, line := range append(lines, again...) {
					if strings.Contains(line, "192.0.2") || strings.Contains(line, "ip=") {
						t.Errorf("got a key in %s", line)
					}
				}
			})
		})
	}
}

// TestLoggerIsQuiet about faults of clients.
func TestLoggerIsQuiet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := new(logRecords)
		h := newMiddleware(t, newStill(t), &ratelimit.Options{Logger: log.logger()},
			ratelimit.Policy{Name: "p", Key: apiKey, Limit: algorithms.TokenBucket(1, time.Hour)}).Handler(ok)
		for _, key := range []string{"good-key", "good-key", "guess", "guess", "a b", ""} {
			record(h, withKeys(key))
		}
		record(h, from("192.0.2.1"))
		if got := log.lines(); len(got) != 0 {
			t.Errorf("got %q, want nothing", got)
		}
	})
}

// TestObserverCallsBack: an observer of a registration may change, release and close the Middleware, and all observers
// receive the events in order.
func TestObserverCallsBack(t *testing.T) {
	for name, tt := range map[string]struct {
		act  func(*ratelimit.Middleware)
		want string
	}{
		"read":    {func(m *ratelimit.Middleware) { m.Policies(); m.Limiter(); m.Findings(); m.TopDenied("p", 1) }, "registered registered unregistered"},
		"update":  {func(m *ratelimit.Middleware) { _ = m.Update(byIP("r", hourly)) }, "registered registered registered unregistered"},
		"release": {(*ratelimit.Middleware).Release, "registered registered unregistered"},
		"close":   {func(m *ratelimit.Middleware) { _ = m.Close(context.Background()) }, "registered registered unregistered"},
	} {
		t.Run(name, func(t *testing.T) {
			var calls, heard []string
			caller := ratelimit.ObserverFunc(func(_ context.Context, e ratelimit.Event) {
				if calls = append(calls, e.Kind.String()); len(calls) == 2 {
					tt.act(e.Middleware)
				}
			})
			hearer := ratelimit.ObserverFunc(func(_ context.Context, e ratelimit.Event) { heard = append(heard, e.Kind.String()) })
			done := make(chan struct{})
			go func() {
				defer close(done)
				m, err := ratelimit.New(newMemory(t), &ratelimit.Options{Observers: []ratelimit.Observer{caller, hearer}, Logger: quiet}, byIP("p", hourly))
				if err != nil {
					t.Error(err)
					return
				}
				_ = m.Update(byIP("q", hourly))
				_ = m.Close(context.Background())
			}()
			select {
			case <-done:
			case <-time.After(time.Minute):
				t.Fatal("the observer waits for ever")
			}
			if got := strings.Join(heard, " "); got != tt.want || strings.Join(calls, " ") != tt.want {
				t.Errorf("got %q and %q, want %q", calls, heard, tt.want)
			}
		})
	}
}
