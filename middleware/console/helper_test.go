// Helpers of the tests: limiters, policies, requests.

package console_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/algorithms/shared"
	"github.com/penstock-go/penstock/keyfunc"
	"github.com/penstock-go/penstock/middleware"
	"github.com/penstock-go/penstock/middleware/console"
	"github.com/penstock-go/penstock/middleware/overrides"
)

// A closed client of go-redis leaves a goroutine behind for up to a second, if its server was gone.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/redis/go-redis/v9/internal/pool.(*ConnPool).tryDial"))
}

var (
	ctx    = context.Background()
	hourly = algorithms.TokenBucket(10, time.Hour)
	quiet  = slog.New(slog.DiscardHandler)
	noon   = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
)

// newStill returns a Memory for which it is always noon.
func newStill() *algorithms.Memory {
	return algorithms.NewMemory(&algorithms.MemoryOptions{Now: func() time.Time { return noon }})
}

// newShared returns a shared limiter that ends with the test. Unless o has another, its deadline is a minute, because a
// slow machine is no outage.
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

// newMiddleware returns a Middleware without a log.
func newMiddleware(t testing.TB, l algorithms.Limiter, table ratelimit.Overrides, p ...ratelimit.Policy) *ratelimit.Middleware {
	t.Helper()
	m, err := ratelimit.New(l, &ratelimit.Options{Overrides: table, Logger: quiet}, p...)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// newHandler returns the handler of a console that admits alice, and its log.
func newHandler(t *testing.T, l algorithms.Limiter, table ratelimit.Overrides, p ...ratelimit.Policy) (http.Handler, *bytes.Buffer) {
	t.Helper()
	logged, before := new(bytes.Buffer), slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(logged, nil)))
	defer slog.SetDefault(before)
	h, err := console.New(newMiddleware(t, l, table, p...)).Handler(operator)
	if err != nil {
		t.Fatal(err)
	}
	return h, logged
}

// operator admits alice.
func operator(r *http.Request) (who string, err error) {
	if r.Header.Get("Authorization") != "Bearer sesame" {
		return "", errors.New("wrong token: hunter2")
	}
	return "alice", nil
}

// call sends alice's request.
func call(h http.Handler, method, target, body string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, target, strings.NewReader(body))
	r.Header.Set("Authorization", "Bearer sesame")
	r.Header.Set("Content-Type", "application/json; charset=utf-8")
	return record(h, r)
}

// byIP is a policy for the addresses of clients.
func byIP(name string, l algorithms.Limit) ratelimit.Policy {
	return ratelimit.Policy{Name: name, Limit: l}
}

// byUser is a policy for the users of asUser.
func byUser(name string, l algorithms.Limit) ratelimit.Policy {
	return ratelimit.Policy{Name: name, Key: user, Limit: l}
}

type userKey struct{}

var user = keyfunc.User(func(ctx context.Context) (keyfunc.Identity, bool) {
	id, ok := ctx.Value(userKey{}).(keyfunc.Identity)
	return id, ok
})

// asUser returns a request of a user in a tier.
func asUser(id, tier string) *http.Request {
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	return r.WithContext(context.WithValue(r.Context(), userKey{}, keyfunc.Identity{ID: id, Tier: tier}))
}

// from returns a request of the client at ip.
func from(ip string) *http.Request {
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.RemoteAddr = net.JoinHostPort(ip, "1234")
	return r
}

// record serves r with h.
func record(h http.Handler, r *http.Request) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// override sets an override.
func override(t *testing.T, table *overrides.Memory, policy, key string, o ratelimit.Override) {
	t.Helper()
	if err := table.Set(ctx, policy, key, o); err != nil {
		t.Fatal(err)
	}
}

// broken is a limiter that always fails.
type broken struct{ err error }

func (b broken) Allow(context.Context, []algorithms.Check) error { return b.err }

// readOnly is a table of overrides that cannot be edited.
type readOnly struct{}

func (readOnly) Find(string, string) (ratelimit.Override, bool) { return ratelimit.Override{}, false }

// who answers Who, and wants no error.
func who(t *testing.T, c *console.Console, client ...console.Subject) []console.Standing {
	t.Helper()
	all, err := c.Who(ctx, client...)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// compact returns JSON without spaces between its tokens.
func compact(text []byte) string {
	var b bytes.Buffer
	if err := json.Compact(&b, text); err != nil {
		return string(text)
	}
	return b.String()
}
