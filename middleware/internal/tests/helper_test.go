// Helpers of the tests: limiters, policies, requests and observers.

package tests

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/algorithms/shared"
	"github.com/penstock-go/penstock/keyfunc"
	"github.com/penstock-go/penstock/middleware"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// noon is the instant of clocks that stand still.
var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// A handClock stands still until a test moves it.
type handClock struct{ ns atomic.Int64 }

func newHandClock(t time.Time) *handClock {
	c := new(handClock)
	c.ns.Store(t.UnixNano())
	return c
}

func (c *handClock) now() time.Time { return time.Unix(0, c.ns.Load()) }

// newMemory returns a Memory with the clock of the test's bubble, or the real one.
func newMemory(t testing.TB) *algorithms.Memory {
	return newMemoryWith(t, algorithms.MemoryOptions{})
}

// newStill returns a Memory for which it is always noon.
func newStill(t testing.TB) *algorithms.Memory {
	return newMemoryWith(t, algorithms.MemoryOptions{Now: func() time.Time { return noon }})
}

func newMemoryWith(t testing.TB, o algorithms.MemoryOptions) *algorithms.Memory {
	t.Helper()
	return algorithms.NewMemory(&o)
}

// newShared returns a shared limiter that ends with the test. Unless o says otherwise its deadline is a minute: a slow
// machine is no outage.
func newShared(t testing.TB, client shared.Client, o shared.Options) *shared.Limiter {
	t.Helper()
	if o.Deadline == 0 {
		o.Deadline = time.Minute
	}
	o.Logger = quiet
	l, err := shared.New(client, &o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() }) // the servers may be gone
	return l
}

func newMiddleware(t testing.TB, l algorithms.Limiter, o *ratelimit.Options, p ...ratelimit.Policy) *ratelimit.Middleware {
	t.Helper()
	m, err := ratelimit.New(l, o, p...)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// byIP is a policy for the addresses of clients.
func byIP(name string, l algorithms.Limit) ratelimit.Policy {
	return ratelimit.Policy{Name: name, Key: keyfunc.IP(nil), Limit: l}
}

// forAll is a private policy, which counts all clients together.
func forAll(name string, l algorithms.Limit) ratelimit.Policy {
	return ratelimit.Policy{Name: name, Key: keyfunc.Const("all"), Limit: l, Hidden: true}
}

// costOf makes all requests cost the same.
func costOf(cost int64) func(*http.Request) int64 { return func(*http.Request) int64 { return cost } }

// from returns a request of the client at ip.
func from(ip string) *http.Request {
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.RemoteAddr = net.JoinHostPort(ip, "1234")
	return r
}

// with returns r with a header field.
func with(r *http.Request, name, value string) *http.Request {
	r.Header.Add(name, value)
	return r
}

// record serves r with h.
func record(h http.Handler, r *http.Request) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// A counter is a handler that counts what it serves.
type counter struct{ n atomic.Int64 }

func (c *counter) ServeHTTP(http.ResponseWriter, *http.Request) { c.n.Add(1) }

// ok serves everything.
var ok = http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})

// limits returns the limit fields of h as HTTP/1.1 shows them, in alphabetical order, with bare newlines.
func limits(h http.Header) string {
	said := http.Header{}
	for name, values := range h {
		if strings.Contains(name, "Ratelimit") || name == "Retry-After" {
			said[name] = values
		}
	}
	return dump(said)
}

func dump(h http.Header) string {
	var b strings.Builder
	_ = h.Write(&b) // a Builder does not fail
	return strings.ReplaceAll(b.String(), "\r\n", "\n")
}

// text joins lines as dump does.
func text(lines ...string) string {
	if len(lines) == 0 {
		return ""
	}
	return strings.Join(lines, "\n") + "\n"
}

type limiterFunc func(context.Context, []algorithms.Check) error

func (f limiterFunc) Allow(ctx context.Context, checks []algorithms.Check) error {
	return f(ctx, checks)
}

// broken returns a limiter that cannot decide, and writes nonsense into the decisions.
func broken(err error) algorithms.Limiter {
	return limiterFunc(func(_ context.Context, checks []algorithms.Check) error {
		for i := range checks {
			checks[i].Decision = algorithms.Decision{
				Source: algorithms.Shared, Remaining: 7, RetryAfter: time.Hour, Delay: ms, ResetAfter: time.Hour,
			}
		}
		return err
	})
}

// sharing makes l pass for a limiter that instances share.
func sharing(l algorithms.Limiter) algorithms.Limiter {
	return limiterFunc(func(ctx context.Context, checks []algorithms.Check) error {
		err := l.Allow(ctx, checks)
		for i := range checks {
			if d := &checks[i].Decision; d.Source == algorithms.Local {
				d.Source = algorithms.Shared
			}
		}
		return err
	})
}

// A spy passes calls on and keeps copies of them, as they were answered.
type spy struct {
	algorithms.Limiter
	mu    sync.Mutex
	calls [][]algorithms.Check
}

func (s *spy) Allow(ctx context.Context, checks []algorithms.Check) error {
	err := s.Limiter.Allow(ctx, checks)
	s.mu.Lock()
	defer s.mu.Unlock()
	kept := slices.Clone(checks)
	for i := range kept {
		kept[i].Key = strings.Clone(kept[i].Key) // its bytes are the caller's
	}
	s.calls = append(s.calls, kept)
	return err
}

// asked returns the checks so far, e.g. "a:ip=192.0.2.1 b:const=all; a:...", and forgets them.
func (s *spy) asked() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var calls []string
	for _, call := range s.calls {
		var checks []string
		for _, c := range call {
			checks = append(checks, c.Policy+":"+c.Key)
		}
		calls = append(calls, strings.Join(checks, " "))
	}
	s.calls = nil
	return strings.Join(calls, "; ")
}

// left returns the units that a policy has left for a key.
func left(t *testing.T, l algorithms.Limiter, p ratelimit.Policy, key string) int64 {
	t.Helper()
	checks := []algorithms.Check{{Policy: p.Name, Key: key, Limit: p.Limit}}
	if err := l.Allow(context.Background(), checks); err != nil {
		t.Fatal(err)
	}
	return checks[0].Decision.Remaining
}

// An eventLog is an observer that keeps its events.
type eventLog struct {
	mu     sync.Mutex
	events []ratelimit.Event
}

func (l *eventLog) Observe(_ context.Context, e ratelimit.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.events = append(l.events, e)
}

// of returns the events of a kind.
func (l *eventLog) of(kind ratelimit.EventKind) []ratelimit.Event {
	l.mu.Lock()
	defer l.mu.Unlock()
	var events []ratelimit.Event
	for _, e := range l.events {
		if e.Kind == kind {
			events = append(events, e)
		}
	}
	return events
}

// quiet logs nothing.
var quiet = slog.New(slog.DiscardHandler)

// shaOf returns the first eight bytes of a SHA-256, in hexadecimal.
func shaOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:8])
}

// A patient limiter gives settlements no deadline, because a busy machine may stop a process for longer.
type patient struct{ algorithms.Limiter }

func (p patient) Allow(ctx context.Context, checks []algorithms.Check) error {
	if op := checks[0].Op; op == algorithms.Return || op == algorithms.Force {
		ctx = context.WithoutCancel(ctx)
	}
	return p.Limiter.Allow(ctx, checks)
}

// byPlan is a policy for users, whose tiers are their plans.
func byPlan(name string, l algorithms.Limit, tiers map[string]algorithms.Limit) ratelimit.Policy {
	return ratelimit.Policy{Name: name, Key: planKey, Limit: l, Tiers: tiers}
}

// planKey counts the user from onPlan, otherwise a user without a plan.
var planKey = keyfunc.User(func(ctx context.Context) (keyfunc.Identity, bool) {
	plan, _ := ctx.Value(planContext{}).(string)
	return keyfunc.Identity{ID: "me", Tier: plan}, true
})

type planContext struct{}

// onPlan returns r of a user on a plan.
func onPlan(r *http.Request, plan string) *http.Request {
	return r.WithContext(context.WithValue(r.Context(), planContext{}, plan))
}
