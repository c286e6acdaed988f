// Tests of failure modes: requests without a decision.

package tests

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/middleware"
)

var errDown = errors.New("dial tcp 10.1.2.3:6379: connection refused")

const unavailable = `{"type":"about:blank","title":"Service Unavailable","status":503}`

// modes returns a policy per failure mode, named a, b and so on.
func modes(fail ...algorithms.FailureMode) []ratelimit.Policy {
	var policies []ratelimit.Policy
	for i, mode := range fail {
		p := byIP(string(rune('a'+i)), hourly)
		p.Fail = mode
		policies = append(policies, p)
	}
	return policies
}

func TestFailureModes(t *testing.T) {
	const local, open, closed = algorithms.FailLocal, algorithms.FailOpen, algorithms.FailClosed
	for _, tt := range []struct {
		name   string
		modes  []algorithms.FailureMode
		err    error
		status int
	}{
		{"local", []algorithms.FailureMode{local}, errDown, 200},
		{"open", []algorithms.FailureMode{open}, errDown, 200},
		{"local and open", []algorithms.FailureMode{local, open}, errDown, 200},
		{"closed", []algorithms.FailureMode{closed}, errDown, 503},
		{"closed first", []algorithms.FailureMode{closed, local, open}, errDown, 503},
		{"closed last", []algorithms.FailureMode{open, local, closed}, errDown, 503},
		{"the limiter's deadline", []algorithms.FailureMode{local}, context.DeadlineExceeded, 200},
		{"the limiter's cancellation", []algorithms.FailureMode{open}, context.Canceled, 200},
		{"a mistake, local", []algorithms.FailureMode{local}, fmt.Errorf("x: %w", algorithms.ErrInvalid), 500},
		{"a mistake, open", []algorithms.FailureMode{open}, algorithms.ErrInvalid, 500},
		{"a mistake, closed", []algorithms.FailureMode{closed}, algorithms.ErrInvalid, 500},
		{"a mistake among others", []algorithms.FailureMode{local}, errors.Join(errDown, algorithms.ErrInvalid), 500},
	} {
		t.Run(tt.name, func(t *testing.T) {
			seen := new(eventLog)
			m := newMiddleware(t, broken(tt.err), &ratelimit.Options{Observers: []ratelimit.Observer{seen}, Logger: quiet}, modes(tt.modes...)...)
			served := new(counter)
			w := record(m.Handler(served), from("192.0.2.1"))
			if w.Code != tt.status || (served.n.Load() == 1) != (tt.status == 200) {
				t.Errorf("got status %d, served %d, want %d", w.Code, served.n.Load(), tt.status)
			}
			e := seen.of(ratelimit.Decided)[0]
			if !errors.Is(e.Err, tt.err) {
				t.Errorf("got error %v told to the observer, want %v", e.Err, tt.err)
			}
			checkUndecided(t, e.Verdict)
			switch tt.status {
			case 200:
				want := ""
				for i := range tt.modes {
					want += fmt.Sprintf(`, "%c";q=10;w=3600`, 'a'+i)
				}
				if got := limits(w.Header()); got != text("Ratelimit-Policy: "+want[2:]) {
					t.Errorf("got\n%swant RateLimit-Policy alone", got)
				}
			case 503:
				checkUnavailable(t, w.Header(), w.Body.String())
			case 500:
				if got := limits(w.Header()); got != "" {
					t.Errorf("got\n%swant no fields of limits", got)
				}
			}
		})
	}
}

// checkUndecided wants a verdict without invented numbers.
func checkUndecided(t *testing.T, v ratelimit.Verdict) {
	t.Helper()
	if v.RetryAfter != 0 || v.Delay != 0 {
		t.Errorf("got RetryAfter %v and Delay %v, want none", v.RetryAfter, v.Delay)
	}
	for _, p := range v.Policies {
		if want := (algorithms.Decision{Allowed: v.Allowed}); p.Decision != want {
			t.Errorf("policy %q: got %+v, want %+v", p.Name, p.Decision, want)
		}
	}
}

// checkUnavailable wants the answer of 503.
func checkUnavailable(t *testing.T, h http.Header, body string) {
	t.Helper()
	if body != unavailable {
		t.Errorf("got body %s, want %s", body, unavailable)
	}
	if got := retryAfter(t, h); got < 1 || got > 5 {
		t.Errorf("got Retry-After %d, want 1 to 5", got)
	}
	if got := h.Get("Content-Type") + ", " + h.Get("Cache-Control"); got != "application/problem+json, no-store" {
		t.Errorf("got %s, want a problem that is not stored", got)
	}
	if h.Get("Ratelimit") != "" || h.Get("Ratelimit-Remaining") != "" {
		t.Errorf("got\n%swant no numbers", limits(h))
	}
}

// TestUnavailableIsSpread: clients do not all come back at the same second.
func TestUnavailableIsSpread(t *testing.T) {
	h := newMiddleware(t, broken(errDown), &ratelimit.Options{Logger: quiet}, modes(algorithms.FailClosed)...).Handler(ok)
	waits := map[int]int{}
	for i := range 200 {
		waits[retryAfter(t, record(h, from(fmt.Sprintf("192.0.2.%d", i))).Header())]++
	}
	for seconds := 2; seconds <= 5; seconds++ {
		if waits[seconds] < 20 {
			t.Errorf("got %v, want about a quarter each of 2 to 5 s", waits)
		}
	}
}

// TestEndedContextIsNeverServed: hanging up at once does not bypass the limits, and is not counted as trouble.
func TestEndedContextIsNeverServed(t *testing.T) {
	expired, cancel := context.WithTimeout(context.Background(), -time.Second)
	defer cancel()
	cancelled, cancelNow := context.WithCancel(context.Background())
	cancelNow()
	for name, ctx := range map[string]context.Context{"expired": expired, "cancelled": cancelled} {
		for _, mode := range []algorithms.FailureMode{algorithms.FailLocal, algorithms.FailOpen, algorithms.FailClosed} {
			t.Run(fmt.Sprint(name, " ", mode), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					log := new(logRecords)
					memory, served := newStill(t), new(counter)
					for _, limiter := range []algorithms.Limiter{memory, broken(errDown)} {
						m := newMiddleware(t, limiter, &ratelimit.Options{Logger: log.logger()}, modes(mode)...)
						w := record(m.Handler(served), from("192.0.2.1").WithContext(ctx))
						if served.n.Load() > 0 || w.Code != http.StatusServiceUnavailable {
							t.Errorf("got status %d, served %d, want 503", w.Code, served.n.Load())
						}
						v, err := m.Check(from("192.0.2.1").WithContext(ctx))
						if v.Allowed || v.Status != http.StatusServiceUnavailable || err == nil {
							t.Errorf("got %+v and error %v, want 503 and an error", v, err)
						}
					}
					if got := memory.Stats().Memory.Keys; got != 0 {
						t.Errorf("got %d keys, want none", got)
					}
					if got := len(log.lines()); got != 0 {
						t.Errorf("got %d lines logged, want none", got)
					}
				})
			})
		}
	}
}

// TestMemoryFull: a new key that there is no room for is denied for a second, and no numbers are invented.
func TestMemoryFull(t *testing.T) {
	for _, l := range []algorithms.Limit{
		algorithms.TokenBucket(1, time.Hour), algorithms.SlidingWindowLog(1, time.Hour), algorithms.FixedWindow(1, time.Hour),
	} {
		t.Run(l.Algorithm().String(), func(t *testing.T) {
			memory := newMemoryWith(t, algorithms.MemoryOptions{MaxKeys: 1, Now: func() time.Time { return noon }})
			m := newMiddleware(t, memory, nil, byIP("p", l))
			h := m.Handler(ok)
			record(h, from("192.0.2.1"))
			record(h, from("192.0.2.1")) // denied, and so kept
			w := record(h, from("192.0.2.2"))
			want := text(`Ratelimit-Policy: "p";q=1;w=3600`, `Retry-After: 1`)
			if got := limits(w.Header()); w.Code != http.StatusTooManyRequests || got != want {
				t.Errorf("got status %d and\n%swant 429 and\n%s", w.Code, got, want)
			}
			if got := w.Body.String(); got != quotaExceeded("") {
				t.Errorf("got body %s, want no policy violated", got)
			}
			v := check(t, m, from("192.0.2.2"))
			if v.Allowed || v.RetryAfter != time.Second || v.Policies[0].Decision.Source != algorithms.Undecided {
				t.Errorf("got %+v, want it denied for a second, undecided", v)
			}
		})
	}
}

// TestUndecidedAmongDecided: limiters may decide some of the policies. The others have no numbers.
func TestUndecidedAmongDecided(t *testing.T) {
	for _, denied := range []bool{false, true} {
		limiter := limiterFunc(func(_ context.Context, checks []algorithms.Check) error {
			checks[0].Decision = algorithms.Decision{Allowed: true}
			checks[1].Decision = algorithms.Decision{
				Allowed: !denied, Source: algorithms.Shared, Remaining: 3, ResetAfter: time.Hour, RetryAfter: 2 * time.Second,
			}
			if !denied {
				checks[1].Decision.RetryAfter = 0
			}
			return nil
		})
		h := newMiddleware(t, limiter, nil, byIP("open", hourly), byIP("known", algorithms.SlidingWindowLog(10, time.Hour))).Handler(ok)
		want := text(`Ratelimit: "known";r=3;t=3600`, `Ratelimit-Limit: 10`, `Ratelimit-Policy: "open";q=10;w=3600, "known";q=10;w=3600`,
			`Ratelimit-Remaining: 3`, `Ratelimit-Reset: 3600`)
		if denied {
			want = text(`Ratelimit: "known";r=3;t=2`, `Ratelimit-Limit: 10`, `Ratelimit-Policy: "open";q=10;w=3600, "known";q=10;w=3600`,
				`Ratelimit-Remaining: 3`, `Ratelimit-Reset: 2`, `Retry-After: 2`)
		}
		if got := limits(record(h, from("192.0.2.1")).Header()); got != want {
			t.Errorf("denied %v: got\n%swant\n%s", denied, got, want)
		}
	}
}
