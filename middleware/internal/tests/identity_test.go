// Tests of missing, malformed and guessed identities.

package tests

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/keyfunc"
	"github.com/penstock-go/penstock/middleware"
)

var (
	apiKey = keyfunc.APIKey("X-API-Key", func(_ context.Context, key string) (keyfunc.Identity, error) {
		switch key {
		case "good-key":
			return keyfunc.Identity{ID: "42", Tier: "big"}, nil
		case "empty-id":
			return keyfunc.Identity{}, nil
		case "down":
			return keyfunc.Identity{}, errOurs
		default:
			return keyfunc.Identity{}, keyfunc.ErrUnknown
		}
	})
	errOurs = errors.New("dial tcp db.internal:5432: hunter2")
	nothing = keyfunc.Custom("field", func(*http.Request) (string, error) { return "", nil })
	failing = keyfunc.Custom("db", func(*http.Request) (string, error) { return "", errOurs })
)

// withKeys returns a request with these API keys, each in a line of its own.
func withKeys(keys ...string) *http.Request {
	r := from("192.0.2.1")
	for _, key := range keys {
		with(r, "X-API-Key", key)
	}
	return r
}

// TestIdentities has the table of the package's documentation.
func TestIdentities(t *testing.T) {
	api := ratelimit.Policy{Name: "api", Key: apiKey, Limit: algorithms.TokenBucket(1, time.Hour)}
	address, user := byIP("address", hourly), ratelimit.Policy{Name: "user", Key: keyfunc.User(userOf), Limit: hourly}
	anyone := ratelimit.Policy{Name: "anyone", Key: keyfunc.FirstOf(keyfunc.User(userOf), apiKey, keyfunc.IP(nil)), Limit: hourly}
	custom := ratelimit.Policy{Name: "custom", Key: failing, Limit: hourly}
	const good, others = "api:usr=42", "address:ip=192.0.2.1"
	for _, tt := range []struct {
		name     string
		policies []ratelimit.Policy
		keys     []string
		status   int
		asked    string // its beginning
		is       error
	}{
		{"known", []ratelimit.Policy{api}, []string{"good-key"}, 200, good, nil},
		{"missing", []ratelimit.Policy{api}, nil, 401, "", keyfunc.ErrMissing},
		{"missing, second", []ratelimit.Policy{address, api}, nil, 401, "", keyfunc.ErrMissing},
		{"malformed", []ratelimit.Policy{api}, []string{"a b"}, 400, "", keyfunc.ErrMalformed},
		{"empty", []ratelimit.Policy{api}, []string{""}, 400, "", keyfunc.ErrMalformed},
		{"two lines", []ratelimit.Policy{api}, []string{"good-key", "good-key"}, 400, "", keyfunc.ErrMalformed},
		{"unknown", []ratelimit.Policy{api}, []string{"guess"}, 401, "", keyfunc.ErrUnknown},
		{"unknown, second", []ratelimit.Policy{address, api}, []string{"guess"}, 401, others, keyfunc.ErrUnknown},
		{"unknown, first", []ratelimit.Policy{api, address}, []string{"guess"}, 401, others, keyfunc.ErrUnknown},
		{"unknown in a Join", []ratelimit.Policy{{Name: "api", Limit: hourly, Key: keyfunc.Join(keyfunc.Const("x"), apiKey)}},
			[]string{"guess"}, 401, "", keyfunc.ErrUnknown},
		{"unknown and missing", []ratelimit.Policy{api, user}, []string{"guess"}, 401, "", keyfunc.ErrMissing},
		{"malformed after unknown", []ratelimit.Policy{api, {Name: "header", Key: keyfunc.Header("X-API-Key"), Limit: hourly}},
			[]string{"guess", "guess"}, 400, "", keyfunc.ErrMalformed},
		{"FirstOf, none", []ratelimit.Policy{anyone}, nil, 200, "anyone:ip=192.0.2.1", nil},
		{"FirstOf, known", []ratelimit.Policy{anyone}, []string{"good-key"}, 200, "anyone:usr=42", nil},
		{"FirstOf, unknown", []ratelimit.Policy{anyone}, []string{"guess"}, 401, "", keyfunc.ErrUnknown},
		{"FirstOf, malformed", []ratelimit.Policy{anyone}, []string{"a b"}, 400, "", keyfunc.ErrMalformed},
		{"an empty ID", []ratelimit.Policy{api}, []string{"empty-id"}, 500, "", nil},
		{"a lookup that fails", []ratelimit.Policy{api}, []string{"down"}, 503, "", errOurs},
		{"a lookup that fails, in a FirstOf", []ratelimit.Policy{anyone}, []string{"down"}, 503, "", errOurs},
		{"no value", []ratelimit.Policy{{Name: "custom", Key: nothing, Limit: hourly}}, nil, 400, "", keyfunc.ErrMissing},
		{"no value, in a Join", []ratelimit.Policy{{Name: "custom", Key: keyfunc.Join(keyfunc.IP(nil), nothing), Limit: hourly}}, nil, 400, "", keyfunc.ErrMissing},
		{"no value, in a FirstOf", []ratelimit.Policy{{Name: "custom", Key: keyfunc.FirstOf(nothing, keyfunc.IP(nil)), Limit: hourly}}, nil, 200, "custom:ip=192.0.2.1", nil},
		{"neither value nor key", []ratelimit.Policy{{Name: "custom", Key: keyfunc.FirstOf(nothing, apiKey), Limit: hourly}}, nil, 401, "", keyfunc.ErrMissing},
		{"the function's error", []ratelimit.Policy{custom}, nil, 500, "", errOurs},
		{"the function's error after unknown", []ratelimit.Policy{api, custom}, []string{"guess"}, 500, "", errOurs},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l, served := &spy{Limiter: newStill(t)}, new(counter)
			o := &ratelimit.Options{Logger: quiet}
			m := newMiddleware(t, l, o, tt.policies...)
			w := record(m.Handler(served), withKeys(tt.keys...))
			if w.Code != tt.status || (served.n.Load() == 1) != (tt.status == 200) {
				t.Errorf("got status %d, served %d, want %d", w.Code, served.n.Load(), tt.status)
			}
			if got := l.asked(); !strings.HasPrefix(got, tt.asked) || tt.asked == "" && got != "" || strings.Contains(got, " ") {
				t.Errorf("got asked %q, want %q", got, tt.asked)
			}
			if got := w.Header().Get("WWW-Authenticate"); (got != "") != (tt.status == 401) {
				t.Errorf("got WWW-Authenticate %q, want one with 401 only", got)
			}
			if got := limits(w.Header()); tt.status != 200 && tt.status != 503 && got != "" {
				t.Errorf("got\n%swant no fields of limits", got)
			}
			if v, err := newMiddleware(t, newStill(t), o, tt.policies...).Check(withKeys(tt.keys...)); tt.is != nil && !errors.Is(err, tt.is) || (err != nil) != (tt.status != 200) ||
				v.Allowed != (tt.status == 200) || !v.Allowed && v.Status != tt.status {
				t.Errorf("got Check %+v and error %v, want status %d and error %v", v, err, tt.status, tt.is)
			}
		})
	}
}

// TestGuessing: invented keys share the allowance of the client's address, and open no counters. The policies that need
// no key count them, and a guess that is denied charges nothing.
func TestGuessing(t *testing.T) {
	memory := newStill(t)
	api := ratelimit.Policy{Name: "api", Key: apiKey, Limit: algorithms.TokenBucket(10, time.Hour),
		Tiers: map[string]algorithms.Limit{"big": algorithms.TokenBucket(1e6, time.Hour)}}
	other := byIP("other", perHour(100))
	h := newMiddleware(t, memory, nil, other, api).Handler(ok)
	for i := range 1000 {
		want := http.StatusUnauthorized
		if i >= 20 {
			want = http.StatusTooManyRequests
		}
		w := record(h, withKeys(fmt.Sprintf("guess-%d", i)))
		if w.Code != want {
			t.Fatalf("guess %d: got status %d, want %d", i, w.Code, want)
		}
		if got := w.Header().Get("Retry-After"); want == http.StatusTooManyRequests && got != "3" && got != "2" {
			t.Fatalf("guess %d: got Retry-After %q, want 3", i, got)
		}
	}
	if got := memory.Stats().Memory.Keys; got != 1 {
		t.Errorf("got %d keys, want 1", got)
	}
	if got := left(t, memory, other, "ip=192.0.2.1"); got != 80 {
		t.Errorf("got %d left of the other policy, want 80", got)
	}
	if got := record(h, withKeys("good-key")).Code; got != http.StatusOK {
		t.Errorf("got status %d for the key that is known, want 200", got)
	}
	guess := with(from("192.0.2.2"), "X-API-Key", "guess")
	if got := record(h, guess).Code; got != http.StatusUnauthorized {
		t.Errorf("got status %d for another address, want 401", got)
	}
}

// TestUnknownWhenTheLimiterFails: no failure mode admits an unknown identity.
func TestUnknownWhenTheLimiterFails(t *testing.T) {
	for mode, want := range map[algorithms.FailureMode]int{
		algorithms.FailLocal: 401, algorithms.FailOpen: 401, algorithms.FailClosed: 503,
	} {
		p, api := byIP("address", hourly), ratelimit.Policy{Name: "api", Key: apiKey, Limit: hourly, Fail: mode}
		p.Fail = mode
		w := record(newMiddleware(t, broken(errOurs), &ratelimit.Options{Logger: quiet}, p, api).Handler(ok), withKeys("guess"))
		if w.Code != want {
			t.Errorf("%v: got status %d, want %d", mode, w.Code, want)
		}
	}
}

// TestNothingLeaks: no answer contains a key, an address, an error, or input of the client.
func TestNothingLeaks(t *testing.T) {
	secrets := []string{"hunter2", "internal", "good-key", "guess", "192.0.2.1", "keyfunc", "algorithms", "middleware",
		"key=", "ip=", "negative", "shared", "<b>"}
	api := ratelimit.Policy{Name: "api", Key: apiKey, Limit: algorithms.Nobody()}
	closed := byIP("a", hourly)
	closed.Fail = algorithms.FailClosed
	negative := byIP("a", hourly)
	negative.Cost = costOf(-1)
	for _, tt := range []struct {
		name    string
		limiter algorithms.Limiter
		policy  ratelimit.Policy
		key     string
		status  int
	}{
		{"denied", newStill(t), api, "good-key", 403},
		{"denied by a hidden policy", newStill(t), forAll("shared", algorithms.Nobody()), "", 403},
		{"unknown", newStill(t), ratelimit.Policy{Name: "api", Key: apiKey, Limit: hourly}, "guess", 401},
		{"malformed", newStill(t), api, "guess <b>", 400},
		{"negative cost", newStill(t), negative, "", 500},
		{"the function's error", newStill(t), ratelimit.Policy{Name: "db", Key: failing, Limit: hourly}, "", 500},
		{"no decision", broken(errOurs), closed, "", 503},
		{"no decision, open", broken(errOurs), byIP("a", hourly), "", 200},
		{"invalid", broken(fmt.Errorf("%w: ip=192.0.2.1 hunter2", algorithms.ErrInvalid)), byIP("a", hourly), "", 500},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := from("192.0.2.1")
			if tt.key != "" {
				r = withKeys(tt.key)
			}
			w := record(newMiddleware(t, tt.limiter, &ratelimit.Options{Logger: quiet}, tt.policy).Handler(ok), r)
			if w.Code != tt.status {
				t.Errorf("got status %d, want %d", w.Code, tt.status)
			}
			answer := dump(w.Header()) + w.Body.String()
			for _, secret := range secrets {
				if strings.Contains(answer, secret) {
					t.Errorf("got %q in\n%s", secret, answer)
				}
			}
		})
	}
}
