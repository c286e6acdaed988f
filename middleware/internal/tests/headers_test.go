// Tests of the header fields of answers.

package tests

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/headers"
	"github.com/penstock-go/penstock/middleware"
)

const ms = time.Millisecond

// A step of a trace: after a pause, n requests of a cost come at once. The last gets this answer.
type step struct {
	pause  time.Duration
	times  int
	cost   int64
	status int
	item   string // of RateLimit, without the name
	retry  string // Retry-After, "" for none
	triple string // limit, remaining, and seconds until the reset, if there is one
}

// headerTraces begin with the whole limit, at the turn of a minute.
var headerTraces = []struct {
	name   string
	limit  algorithms.Limit
	policy string // RateLimit-Policy, without the name
	steps  []step
}{
	{"token bucket", algorithms.TokenBucket(100, time.Minute), "q=100;w=60", []step{
		{0, 1, 1, 200, "r=99;t=60", "", "100 99 1"},
		{0, 57, 1, 200, "r=42;t=26", "", "100 42 35"},
		{0, 42, 1, 200, "r=0;t=1", "", "100 0 60"},
		{0, 1, 1, 429, "r=0;t=1", "1", "100 0 1"},
		{1200 * ms, 1, 5, 429, "r=2;t=2", "2", "100 2 2"},
		{0, 1, 101, 429, "r=2", "", "100 2"},
		{1800 * ms, 1, 5, 200, "r=0;t=1", "", "100 0 60"},
	}},
	{"token bucket with a burst", algorithms.TokenBucket(60, time.Minute).WithBurst(10), "q=10;w=10", []step{
		{0, 1, 1, 200, "r=9;t=9", "", "10 9 1"},
		{0, 1, 9, 200, "r=0;t=1", "", "10 0 10"},
		{0, 1, 10, 429, "r=0;t=10", "10", "10 0 10"},
		{500 * ms, 1, 10, 429, "r=0;t=20", "20", "10 0 20"}, // after the first one's ten units
		{1000 * ms, 1, 0, 200, "r=1;t=2", "", "10 1 9"},
	}},
	{"slow token bucket", algorithms.TokenBucket(6, time.Minute), "q=6;w=60", []step{
		{0, 1, 6, 200, "r=0;t=10", "", "6 0 60"},
		{300 * ms, 1, 0, 200, "r=0;t=10", "", "6 0 60"},
	}},
	{"fast token bucket", algorithms.TokenBucket(10, 100*ms), "q=10;w=1", []step{
		{0, 1, 10, 200, "r=0;t=1", "", "10 0 1"},
		{0, 1, 1, 429, "r=0;t=1", "1", "10 0 1"},
	}},
	{"leaky bucket", algorithms.LeakyBucket(60, time.Minute).WithBurst(3), "q=3;w=3", []step{
		{0, 1, 1, 200, "r=2;t=2", "", "3 2 1"},
		{0, 1, 2, 200, "r=0;t=1", "", "3 0 3"}, // and is held for a second
		{0, 1, 2, 429, "r=1;t=1", "1", "3 1 1"},
	}},
	{"sliding window log", algorithms.SlidingWindowLog(3, time.Minute), "q=3;w=60", []step{
		{0, 1, 1, 200, "r=2;t=60", "", "3 2 60"},
		{20 * time.Second, 1, 2, 200, "r=0;t=40", "", "3 0 60"},
		{0, 1, 1, 429, "r=0;t=40", "40", "3 0 40"},
		{0, 1, 2, 429, "r=0;t=60", "60", "3 0 60"},
		{40 * time.Second, 1, 1, 200, "r=0;t=20", "", "3 0 60"},
	}},
	{"sliding window counter", algorithms.SlidingWindowCounter(10, time.Minute), "q=10;w=60", []step{
		{0, 1, 10, 200, "r=0;t=66", "", "10 0 120"},
		{0, 1, 1, 429, "r=0;t=66", "66", "10 0 66"},
		{66 * time.Second, 1, 1, 200, "r=0;t=6", "", "10 0 114"},
	}},
	{"fixed window", algorithms.FixedWindow(100, time.Minute), "q=100;w=60", []step{
		{0, 1, 1, 200, "r=99;t=60", "", "100 99 60"},
		{59 * time.Second, 1, 9, 200, "r=90;t=54", "", "100 90 1"},
		{0, 1, 101, 429, "r=90", "", "100 90"},
	}},
	{"nobody", algorithms.Nobody(), "q=0", []step{
		{0, 1, 1, 403, "r=0", "", "0 0"},
		{0, 1, 0, 403, "r=0", "", "0 0"},
	}},
}

func TestHeaders(t *testing.T) {
	for _, tt := range headerTraces {
		for _, dialect := range []headers.Dialect{0, headers.Draft, headers.SeparateFields, headers.XRateLimit, headers.Draft | headers.XRateLimit} {
			t.Run(fmt.Sprintf("%s in %v", tt.name, dialect), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { runHeaders(t, tt.limit, tt.policy, tt.steps, dialect) })
			})
		}
	}
}

func runHeaders(t *testing.T, l algorithms.Limit, policy string, steps []step, dialect headers.Dialect) {
	var cost int64
	p := byIP("p", l)
	p.Cost = func(*http.Request) int64 { return cost }
	memory := newMemory(t)
	running := limiterFunc(func(ctx context.Context, checks []algorithms.Check) error {
		if op := checks[0].Op; op == algorithms.Return || op == algorithms.Renew {
			return nil // no request ever ends
		}
		return memory.Allow(ctx, checks)
	})
	h := newMiddleware(t, running, &ratelimit.Options{Headers: dialect}, p).Handler(ok)
	if dialect == 0 {
		dialect = headers.Draft | headers.SeparateFields
	}
	for i, s := range steps {
		time.Sleep(s.pause)
		cost = s.cost
		now := time.Now()
		var w *httptest.ResponseRecorder
		for range s.times {
			w = record(h, from("192.0.2.1"))
		}
		want := s.fields(dialect, policy, now)
		if got := limits(w.Header()); w.Code != s.status || got != want {
			t.Errorf("step %d: got status %d and\n%swant %d and\n%s", i, w.Code, got, s.status, want)
		}
	}
}

// fields returns the wanted fields of the answer to a step.
func (s step) fields(dialect headers.Dialect, policy string, now time.Time) string {
	h := http.Header{}
	if dialect&headers.Draft != 0 {
		h["Ratelimit"] = []string{`"p";` + s.item}
	}
	if dialect&(headers.Draft|headers.SeparateFields) != 0 {
		h["Ratelimit-Policy"] = []string{`"p";` + policy}
	}
	if s.retry != "" {
		h["Retry-After"] = []string{s.retry}
	}
	values := strings.Fields(s.triple)
	if dialect&headers.SeparateFields != 0 {
		for i, name := range []string{"Limit", "Remaining", "Reset"}[:len(values)] {
			h["Ratelimit-"+name] = values[i : i+1]
		}
	}
	if dialect&headers.XRateLimit != 0 {
		if len(values) == 3 {
			seconds, _ := strconv.ParseInt(values[2], 10, 64) // of the table
			values[2] = strconv.FormatInt(now.Add(time.Second-1).Unix()+seconds, 10)
		}
		for i, name := range []string{"Limit", "Remaining", "Reset"}[:len(values)] {
			h["X-Ratelimit-"+name] = values[i : i+1]
		}
	}
	return dump(h)
}

// TestHeadersOfSeveral has the fields of several policies.
func TestHeadersOfSeveral(t *testing.T) {
	second, minute := algorithms.TokenBucket(1, time.Second), algorithms.SlidingWindowLog(1, time.Minute)
	for _, tt := range []struct {
		name     string
		policies []ratelimit.Policy
		times    int
		want     string
		violated string
	}{
		{"the least r comes first",
			[]ratelimit.Policy{byIP("big", algorithms.TokenBucket(5000, time.Minute)), byIP("small", algorithms.TokenBucket(100, time.Minute))}, 1,
			text(`Ratelimit: "small";r=99;t=60, "big";r=4999;t=60`, `Ratelimit-Limit: 100`,
				`Ratelimit-Policy: "big";q=5000;w=60, "small";q=100;w=60`, `Ratelimit-Remaining: 99`, `Ratelimit-Reset: 1`), ""},
		{"only denying policies are items",
			[]ratelimit.Policy{byIP("a", second), byIP("b", hourly), byIP("c", minute)}, 2,
			text(`Ratelimit: "a";r=0;t=1, "c";r=0;t=60`, `Ratelimit-Limit: 1`,
				`Ratelimit-Policy: "a";q=1;w=1, "b";q=10;w=3600, "c";q=1;w=60`, `Ratelimit-Remaining: 0`, `Ratelimit-Reset: 60`,
				`Retry-After: 60`), `,"violated-policies":["a","c"]`},
		{"a private one is not advertised",
			[]ratelimit.Policy{forAll("secret", hourly), byIP("a", second)}, 1,
			text(`Ratelimit: "a";r=0;t=1`, `Ratelimit-Limit: 1`, `Ratelimit-Policy: "a";q=1;w=1`, `Ratelimit-Remaining: 0`,
				`Ratelimit-Reset: 1`), ""},
		{"a private one alone, admitted", []ratelimit.Policy{forAll("secret", hourly)}, 1, "", ""},
		{"a private one alone, denied by nobody", []ratelimit.Policy{forAll("secret", algorithms.Nobody())}, 1, "", ""},
		{"no wait helps with one of two", []ratelimit.Policy{byIP("a", second), byIP("none", algorithms.Nobody())}, 1,
			text(`Ratelimit: "none";r=0`, `Ratelimit-Limit: 0`, `Ratelimit-Policy: "a";q=1;w=1, "none";q=0`, `Ratelimit-Remaining: 0`),
			`,"violated-policies":["none"]`},
		{"private never, public one second", []ratelimit.Policy{forAll("secret", algorithms.Nobody()), byIP("a", second)}, 1,
			text(`Ratelimit-Policy: "a";q=1;w=1`), ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := newMiddleware(t, newStill(t), nil, tt.policies...).Handler(ok)
			var w *httptest.ResponseRecorder
			for range tt.times {
				w = record(h, from("192.0.2.1"))
			}
			if got := limits(w.Header()); got != tt.want {
				t.Errorf("got\n%swant\n%s", got, tt.want)
			}
			if w.Code == http.StatusTooManyRequests {
				if got := w.Body.String(); got != quotaExceeded(tt.violated) {
					t.Errorf("got body\n%s\nwant\n%s", got, quotaExceeded(tt.violated))
				}
			}
		})
	}
}

func quotaExceeded(violated string) string {
	return `{"type":"https://iana.org/assignments/http-problem-types#quota-exceeded","title":"Quota Exceeded","status":429` + violated + `}`
}
