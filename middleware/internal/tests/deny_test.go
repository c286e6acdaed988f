// Tests of Deny, which answers as Handler does, and of the silence about hidden policies.

package tests

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/headers"
	"github.com/penstock-go/penstock/keyfunc"
	"github.com/penstock-go/penstock/middleware"
	"github.com/penstock-go/penstock/middleware/overrides"
)

// A refusing is a way to be refused: a Middleware, and a request that it refuses.
type refusing struct {
	m *ratelimit.Middleware
	r func() *http.Request
}

// waysToBeRefused returns one refusing per kind of refusal, with the options' dialect and answer.
func waysToBeRefused(t *testing.T, o ratelimit.Options) map[string]refusing {
	o.Logger, o.ClientIP = quiet, keyfunc.IP(nil)
	dear := byIP("p", hourly)
	dear.Cost = costOf(11)
	banning, table := o, overrides.NewMemory()
	banning.Overrides = table
	override(t, table, "p", "ip=192.0.2.1", ratelimit.Override{Mode: ratelimit.ModeBanned, Until: time.Now().Add(90 * time.Second)})
	hidden, capacity := forAll("hidden", algorithms.TokenBucket(1, time.Hour)), forAll("capacity", algorithms.TokenBucket(1, time.Hour))
	capacity.Capacity, capacity.Hidden = true, false
	api := ratelimit.Policy{Name: "api", Key: apiKey, Limit: algorithms.TokenBucket(1, time.Hour)}
	plain := func() *http.Request { return from("192.0.2.1") }
	keys := func(keys ...string) func() *http.Request { return func() *http.Request { return withKeys(keys...) } }
	guesses := func() func() *http.Request {
		n := 0
		return func() *http.Request { n++; return withKeys(fmt.Sprint("guess", n)) }
	}
	drain := func(n int, r func() *http.Request, o ratelimit.Options, p ...ratelimit.Policy) refusing {
		m := newMiddleware(t, newMemory(t), &o, p...)
		for range n {
			_, _ = m.Check(r())
		}
		return refusing{m, r}
	}
	closed := drain(0, plain, o, byIP("p", hourly))
	if err := closed.m.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	closing := modes(algorithms.FailClosed)[0]
	return map[string]refusing{
		"denied":             drain(1, plain, o, byIP("p", perHour(1))),
		"denied by two":      drain(1, plain, o, byIP("p", perHour(1)), byIP("q", perHour(1)), byIP("r", hourly)),
		"denied for ever":    drain(0, plain, o, dear),
		"nobody":             drain(0, plain, o, byIP("p", algorithms.Nobody())),
		"denied by a window": drain(1, plain, o, byIP("p", algorithms.FixedWindow(1, time.Hour))),
		"denied by a day":    drain(1, plain, o, byIP("p", algorithms.PerDay(1, nil))),
		"hidden":             drain(1, plain, o, byIP("p", hourly), hidden),
		"hidden only":        drain(1, plain, o, hidden),
		"capacity":           drain(1, plain, o, byIP("p", hourly), capacity),
		"missing":            drain(0, plain, o, api),
		"malformed":          drain(0, keys("a b"), o, api),
		"unknown":            drain(0, keys("guess"), o, ratelimit.Policy{Name: "api", Key: apiKey, Limit: hourly}),
		"unknown and denied": drain(20, guesses(), ratelimit.Options{Headers: o.Headers, Refused: o.Refused}, api),
		"guessed and denied": drain(20, guesses(), o, api),
		"lookup failed":      drain(0, keys("down"), o, api),
		"empty ID":           drain(0, keys("empty-id"), o, api),
		"failed closed":      {newMiddleware(t, broken(errDown), &o, closing), plain},
		"banned":             {newMiddleware(t, newMemory(t), &banning, byIP("p", hourly)), plain},
		"closed":             closed,
	}
}

// TestDenyIsHandler: the answers of Deny and Handler are equal, byte for byte, in every dialect, and also by Refused.
func TestDenyIsHandler(t *testing.T) {
	own := func(w http.ResponseWriter, _ *http.Request, v ratelimit.Verdict) {
		w.WriteHeader(v.Status)
		_, _ = io.WriteString(w, fmt.Sprint("own ", v.RetryAfter))
	}
	for _, o := range []ratelimit.Options{
		{}, {Headers: headers.Draft}, {Headers: headers.XRateLimit | headers.SeparateFields}, {Refused: own},
	} {
		synctest.Test(t, func(t *testing.T) {
			time.Sleep(1234567 * time.Microsecond)
			for name, way := range waysToBeRefused(t, o) {
				v, err := way.m.Check(way.r())
				if v.Allowed {
					t.Fatalf("%s: got %+v and %v, want a refusal", name, v, err)
				}
				handled, denied := httptest.NewRecorder(), httptest.NewRecorder()
				for _, w := range []*httptest.ResponseRecorder{handled, denied} {
					w.Header().Set("Etag", "outer")
					w.Header().Set("Ratelimit", `"outer";r=1`)
				}
				way.m.Handler(ok).ServeHTTP(handled, way.r())
				way.m.Deny(denied, way.r(), v)
				if got, want := answerOf(denied), answerOf(handled); got != want || denied.Code != v.Status {
					t.Errorf("%s: got\n%s\nof Deny, and of Handler\n%s", name, got, want)
				}
			}
		})
	}
}

func answerOf(w *httptest.ResponseRecorder) string {
	return fmt.Sprint(w.Code, "\n", dump(w.Header()), "\n", w.Body)
}

// TestDenyAfterUpdate: the policies that made the verdict answer it, and Retry-After is the verdict's.
func TestDenyAfterUpdate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, way := range waysToBeRefused(t, ratelimit.Options{}) {
			if name == "closed" || strings.Contains(name, "guess") || strings.Contains(name, "unknown") {
				continue // Update refuses, or the request is charged again
			}
			v, _ := way.m.Check(way.r())
			want := record(way.m.Handler(ok), way.r())
			if err := way.m.Update(byIP("other", hourly)); err != nil {
				t.Fatal(err)
			}
			got := httptest.NewRecorder()
			way.m.Deny(got, way.r(), v)
			if answerOf(got) != answerOf(want) {
				t.Errorf("%s: got\n%s\nafter an Update, want\n%s", name, answerOf(got), answerOf(want))
			}
		}
	})
}

// TestDenyPanics if the verdict denies nothing, or if no Check made it. The message says so.
func TestDenyPanics(t *testing.T) {
	m := newMiddleware(t, newStill(t), &ratelimit.Options{Exempt: []netip.Prefix{netip.MustParsePrefix("192.0.2.2/32")}}, byIP("p", hourly))
	allowed, _ := m.Check(from("192.0.2.1"))
	exempt, _ := m.Check(from("192.0.2.2"))
	for name, v := range map[string]ratelimit.Verdict{
		"allowed": allowed, "exempt": exempt, "zero": {}, "made by hand": {Status: http.StatusTooManyRequests},
		"made by hand, 401": {Status: http.StatusUnauthorized},
	} {
		t.Run(name, func(t *testing.T) {
			w := httptest.NewRecorder()
			defer func() {
				if message, _ := recover().(string); !strings.HasPrefix(message, "ratelimit: Deny") || len(w.Header()) > 0 {
					t.Errorf("got panic %q and header %v, want one of Deny and none", message, w.Header())
				}
			}()
			m.Deny(w, from("192.0.2.1"), v)
		})
	}
}

// TestHiddenIsHidden: no header of any response names the policy, or its figures; a denial has Retry-After only.
func TestHiddenIsHidden(t *testing.T) {
	for _, tt := range []struct {
		name string
		edit func(*ratelimit.Policy)
		code int
		kind string
	}{
		{"Hidden.", func(p *ratelimit.Policy) { p.Hidden = true }, 429, "quota-exceeded"},
		{"Capacity.", func(p *ratelimit.Policy) { p.Capacity = true }, 503, "temporary-reduced-capacity"},
		{"Hidden and Capacity.", func(p *ratelimit.Policy) { p.Hidden, p.Capacity = true, true }, 503, "temporary-reduced-capacity"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				secret := ratelimit.Policy{Name: "secret", Key: keyfunc.Const("all"), Limit: algorithms.TokenBucket(2, time.Hour)}
				tt.edit(&secret)
				o := &ratelimit.Options{Headers: headers.Draft | headers.SeparateFields | headers.XRateLimit}
				h := newMiddleware(t, newMemory(t), o, secret).Handler(ok)
				beside := newMiddleware(t, newMemory(t), o, secret, byIP("open", hourly)).Handler(ok)
				for range 2 {
					if w := record(h, from("192.0.2.1")); w.Code != 200 || len(w.Header()) > 0 {
						t.Errorf("got %s, want 200 without fields", answerOf(w))
					}
					if w := record(beside, from("192.0.2.1")); w.Code != 200 || strings.Contains(dump(w.Header()), "secret") {
						t.Errorf("got %s, want 200 and no secret", answerOf(w))
					}
				}
				alone, both := record(h, from("192.0.2.1")), record(beside, from("192.0.2.1"))
				wantWait := regexpWait(limits(alone.Header()))
				if alone.Code != tt.code || !wantWait || !strings.Contains(alone.Body.String(), tt.kind) || strings.Contains(alone.Body.String(), "violated") {
					t.Errorf("got %s, want %d, Retry-After only, %s and no violated-policies", answerOf(alone), tt.code, tt.kind)
				}
				rest := both.Header().Clone()
				rest.Del("Ratelimit-Policy")
				if both.Code != tt.code || !regexpWait(limits(rest)) || strings.Contains(answerOf(both), "secret") || strings.Contains(both.Body.String(), "violated") {
					t.Errorf("got %s, want %d, no items, and no secret", answerOf(both), tt.code)
				}
				if got := alone.Header().Get("Cache-Control"); got != "no-store" {
					t.Errorf("got Cache-Control %q, want no-store", got)
				}
			})
		})
	}
}

// regexpWait reports whether the fields are one Retry-After of half an hour to half a minute more.
func regexpWait(fields string) bool {
	var seconds int
	_, err := fmt.Sscanf(fields, "Retry-After: %d\n", &seconds)
	return err == nil && strings.Count(fields, "\n") == 1 && seconds >= 1800 && seconds <= 1830
}
