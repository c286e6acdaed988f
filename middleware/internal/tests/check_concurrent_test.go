package tests

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/middleware"
)

// TestCheckHoldsNothing: Check refuses to take units of a Concurrent limit, because it could not return them, wherever
// the limit comes from. It charges no other policy either.
func TestCheckHoldsNothing(t *testing.T) {
	two := algorithms.Concurrent(2, time.Minute)
	plain, shadow, tried, dynamic := byIP("p", two), byIP("p", two), byIP("p", hourly), byIP("p", hourly)
	shadow.Shadow = true
	tried.Candidate = &two
	dynamic.LimitOf = func(*http.Request) (algorithms.Limit, error) { return two, nil }
	for name, p := range map[string]ratelimit.Policy{"limit": plain, "shadow": shadow, "candidate": tried, "LimitOf": dynamic} {
		other, memory := byIP("other", hourly), newStill(t)
		m := newMiddleware(t, memory, nil, other, p)
		for range 3 {
			v, err := m.Check(from("192.0.2.1"))
			if !errors.Is(err, algorithms.ErrInvalid) || !strings.Contains(err.Error(), "use Handler") || v.Allowed || v.Status != http.StatusInternalServerError {
				t.Errorf("%s: got %+v and %v, want 500 and an error that names Handler", name, v, err)
			}
		}
		if got := left(t, memory, other, "ip=192.0.2.1"); got != 10 {
			t.Errorf("%s: got %d left of the other policy, want all", name, got)
		}
		for range 3 { // no unit is held
			if got := record(m.Handler(ok), from("192.0.2.1")).Code; got != http.StatusOK {
				t.Errorf("%s: got %d of the handler, want 200", name, got)
			}
		}
		p.Skip = func(*http.Request) bool { return true }
		if err := m.Update(other, p); err != nil {
			t.Fatal(err)
		}
		if v, err := m.Check(from("192.0.2.1")); err != nil || !v.Allowed {
			t.Errorf("%s: got %+v and %v of a request that the policy skips, want it allowed", name, v, err)
		}
	}
}

// TestTimeoutInside: http.TimeoutHandler directly inside of a Concurrent limit is a finding; outside, or inside of another
// limit, it is none.
func TestTimeoutInside(t *testing.T) {
	for _, tt := range []struct {
		name  string
		limit algorithms.Limit
		wrap  func(*ratelimit.Middleware) http.Handler
		want  int
	}{
		{"inside", algorithms.Concurrent(2, time.Minute), func(m *ratelimit.Middleware) http.Handler { return m.Handler(http.TimeoutHandler(ok, time.Minute, "")) }, 1},
		{"outside", algorithms.Concurrent(2, time.Minute), func(m *ratelimit.Middleware) http.Handler { return http.TimeoutHandler(m.Handler(ok), time.Minute, "") }, 0},
		{"of a rate", hourly, func(m *ratelimit.Middleware) http.Handler { return m.Handler(http.TimeoutHandler(ok, time.Minute, "")) }, 0},
	} {
		m := newMiddleware(t, newStill(t), &ratelimit.Options{Logger: quiet}, byIP("p", tt.limit))
		record(tt.wrap(m), from("192.0.2.1"))
		found := m.Findings()
		if len(found) != tt.want || tt.want > 0 && found[0].Code != "PS116" {
			t.Errorf("%s: got the findings %v, want %d", tt.name, found, tt.want)
		}
	}
}
