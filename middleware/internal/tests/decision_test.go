// Tests of decisions: several policies, tiers, costs, skips.

package tests

import (
	"fmt"
	"math"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/keyfunc"
	"github.com/penstock-go/penstock/middleware"
)

// check returns the verdict on a request, and fails the test if there is none.
func check(t *testing.T, m *ratelimit.Middleware, r *http.Request) ratelimit.Verdict {
	t.Helper()
	v, err := m.Check(r)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// TestAllOrNothing: whichever policy denies, no other is charged for it.
func TestAllOrNothing(t *testing.T) {
	tight, wide := byIP("tight", algorithms.TokenBucket(2, time.Hour)), byIP("wide", algorithms.TokenBucket(100, time.Hour))
	for _, tt := range []struct {
		name     string
		policies []ratelimit.Policy
	}{
		{"the first denies", []ratelimit.Policy{tight, wide}},
		{"the last denies", []ratelimit.Policy{wide, tight}},
		{"one between denies", []ratelimit.Policy{byIP("a", hourly), tight, wide}},
		{"a private one denies", []ratelimit.Policy{forAll("tight", tight.Limit), wide}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			limiter, served := newStill(t), new(counter)
			h := newMiddleware(t, limiter, nil, tt.policies...).Handler(served)
			for i := range 10 {
				want := http.StatusOK
				if i >= 2 {
					want = http.StatusTooManyRequests
				}
				if got := record(h, from("192.0.2.1")).Code; got != want {
					t.Errorf("request %d: got status %d, want %d", i, got, want)
				}
			}
			if got := served.n.Load(); got != 2 {
				t.Errorf("got %d requests served, want 2", got)
			}
			for _, p := range tt.policies {
				probe := ratelimit.Policy{Name: p.Name, Key: p.Key, Limit: p.Limit, Cost: costOf(0)}
				v := check(t, newMiddleware(t, limiter, nil, probe), from("192.0.2.1"))
				if got, want := v.Policies[0].Decision.Remaining, p.Limit.Burst()-2; got != want {
					t.Errorf("policy %q: got %d left, want %d", p.Name, got, want)
				}
			}
		})
	}
}

// TestOrder: private policies come last. Otherwise the order is the configuration's.
func TestOrder(t *testing.T) {
	l := &spy{Limiter: newStill(t)}
	m := newMiddleware(t, l, nil, forAll("p1", hourly), byIP("b", hourly), forAll("p2", hourly), byIP("a", hourly))
	v := check(t, m, from("192.0.2.1"))
	if got, want := l.asked(), "b:ip=192.0.2.1 a:ip=192.0.2.1 p1:const=all p2:const=all"; got != want {
		t.Errorf("got %s\nwant %s, in one call", got, want)
	}
	var names []string
	for _, p := range v.Policies {
		names = append(names, fmt.Sprint(p.Name, p.Hidden))
	}
	if want := []string{"bfalse", "afalse", "p1true", "p2true"}; !slices.Equal(names, want) {
		t.Errorf("got %v, want %v", names, want)
	}
}

// TestFigures: a verdict has the figures of all policies, and the longest wait of the denying policies.
func TestFigures(t *testing.T) {
	policies := []ratelimit.Policy{
		byIP("minute", algorithms.SlidingWindowLog(1, time.Minute)), byIP("roomy", hourly), byIP("second", algorithms.TokenBucket(1, time.Second)),
	}
	wants := map[string]struct {
		allowed   bool
		remaining int64
		retry     time.Duration
	}{"minute": {false, 0, time.Minute}, "roomy": {true, 9, 0}, "second": {false, 0, time.Second}}
	for range 2 { // also the other way around
		slices.Reverse(policies)
		m := newMiddleware(t, newStill(t), nil, policies...)
		v := check(t, m, from("192.0.2.1"))
		if !v.Allowed || v.Status != 0 || v.RetryAfter != 0 || v.Delay != 0 {
			t.Errorf("got %+v, want it allowed", v)
		}
		v = check(t, m, from("192.0.2.1"))
		if v.Allowed || v.Status != http.StatusTooManyRequests || v.RetryAfter != time.Minute || v.Delay != 0 {
			t.Errorf("got %+v, want it denied for a minute", v)
		}
		for _, p := range v.Policies {
			d, want := p.Decision, wants[p.Name]
			if d.Allowed != want.allowed || d.Remaining != want.remaining || d.RetryAfter != want.retry || d.Source != algorithms.Local {
				t.Errorf("policy %q: got %+v, want %+v", p.Name, d, want)
			}
		}
	}
}

// TestNeverIsTheLongestWait of several.
func TestNeverIsTheLongestWait(t *testing.T) {
	none, full := byIP("none", algorithms.Nobody()), byIP("full", algorithms.TokenBucket(1, time.Hour))
	for _, policies := range [][]ratelimit.Policy{{none, full}, {full, none}} {
		memory := newStill(t)
		check(t, newMiddleware(t, memory, nil, full), from("192.0.2.1"))
		if v := check(t, newMiddleware(t, memory, nil, policies...), from("192.0.2.1")); v.Allowed || v.RetryAfter != algorithms.Never {
			t.Errorf("got %+v, want Never", v)
		}
	}
}

func TestTiers(t *testing.T) {
	seen := new(eventLog)
	p := byPlan("plan", algorithms.TokenBucket(10, time.Minute), map[string]algorithms.Limit{
		"pro":     algorithms.TokenBucket(100, time.Minute).WithBurst(50),
		"window":  algorithms.SlidingWindowLog(7, time.Hour),
		"blocked": algorithms.Nobody(),
	})
	m := newMiddleware(t, newStill(t), &ratelimit.Options{Observers: []ratelimit.Observer{seen}, Logger: quiet}, p)
	for _, tt := range []struct {
		plan, policy, tier string
		status             int
	}{
		{"", `"plan";q=10;w=60`, "", 200},
		{"pro", `"plan";q=50;w=30`, "pro", 200},
		{"window", `"plan";q=7;w=3600`, "window", 200},
		{"blocked", `"plan";q=0`, "blocked", 403},
		{"Pro", `"plan";q=10;w=60`, "", 200},
		{"gold", `"plan";q=10;w=60`, "", 200},
	} {
		w := record(m.Handler(ok), onPlan(from("192.0.2.1"), tt.plan))
		if got := w.Header().Get("Ratelimit-Policy"); got != tt.policy || w.Code != tt.status {
			t.Errorf("plan %q: got status %d and %s, want %d and %s", tt.plan, w.Code, got, tt.status, tt.policy)
		}
		decided := seen.of(ratelimit.Decided)
		p := decided[len(decided)-1].Verdict.Policies[0]
		if unknown := tt.plan != tt.tier; p.Tier != tt.tier || p.UnknownTier != unknown || (findings(m) != "") != unknown {
			t.Errorf("plan %q: got tier %q, unknown: %t, and findings %q; want %q and %t", tt.plan, p.Tier, p.UnknownTier, findings(m), tt.tier, unknown)
		}
	}
	if got := findings(m); got != "PS109 plan" {
		t.Errorf("got findings %q, want the unknown tiers", got)
	}
}

// TestTierCarriesOver: a client who upgrades keeps its spent units, and gets the added units at once.
func TestTierCarriesOver(t *testing.T) {
	p := byPlan("plan", algorithms.TokenBucket(3, time.Hour), map[string]algorithms.Limit{"pro": algorithms.TokenBucket(5, time.Hour)})
	m := newMiddleware(t, newStill(t), nil, p)
	for range 3 {
		check(t, m, from("192.0.2.1"))
	}
	if check(t, m, from("192.0.2.1")).Allowed {
		t.Error("got a fourth request allowed, want it denied")
	}
	v := check(t, m, onPlan(from("192.0.2.1"), "pro"))
	if got := v.Policies[0].Decision.Remaining; !v.Allowed || got != 1 {
		t.Errorf("got allowed %v with %d left, want true and 1", v.Allowed, got)
	}
}

func TestCost(t *testing.T) {
	for _, tt := range []struct {
		cost   int64
		status int
		left   int64
		retry  string
	}{
		{0, 200, 10, ""}, {1, 200, 9, ""}, {10, 200, 0, ""},
		{11, 429, 10, ""}, {math.MaxInt64, 429, 10, ""},
		{-1, 500, 10, ""}, {math.MinInt64, 500, 10, ""},
	} {
		t.Run(fmt.Sprint(tt.cost), func(t *testing.T) {
			limiter, other := newStill(t), byIP("other", hourly)
			p := byIP("cost", hourly)
			p.Cost = costOf(tt.cost)
			w := record(newMiddleware(t, limiter, &ratelimit.Options{Logger: quiet}, p, other).Handler(ok), from("192.0.2.1"))
			if w.Code != tt.status || w.Header().Get("Retry-After") != tt.retry {
				t.Errorf("got status %d, Retry-After %q, want %d, %q", w.Code, w.Header().Get("Retry-After"), tt.status, tt.retry)
			}
			if got := left(t, limiter, p, "ip=192.0.2.1"); got != tt.left {
				t.Errorf("got %d left, want %d", got, tt.left)
			}
			want := other.Limit.Burst()
			if tt.status == http.StatusOK {
				want--
			}
			if got := left(t, limiter, other, "ip=192.0.2.1"); got != want {
				t.Errorf("got %d left of the other policy, want %d", got, want)
			}
		})
	}
}

func TestSkip(t *testing.T) {
	health := func(r *http.Request) bool { return r.URL.Path == "/healthz" }
	a, b := byIP("a", hourly), byIP("b", algorithms.Nobody())
	b.Skip = func(*http.Request) bool { return true }
	l := &spy{Limiter: newStill(t)}
	h := newMiddleware(t, l, nil, a, b).Handler(ok)
	if got := limits(record(h, from("192.0.2.1")).Header()); got != text(
		`Ratelimit: "a";r=9;t=3240`, `Ratelimit-Limit: 10`, `Ratelimit-Policy: "a";q=10;w=3600`,
		`Ratelimit-Remaining: 9`, `Ratelimit-Reset: 360`) {
		t.Errorf("got\n%swant the fields of a alone", got)
	}
	if got := l.asked(); got != "a:ip=192.0.2.1" {
		t.Errorf("got %s, want a alone asked", got)
	}

	// A policy that does not apply wants no identity.
	user := ratelimit.Policy{Name: "user", Key: keyfunc.User(userOf), Limit: hourly, Skip: health}
	h = newMiddleware(t, l, nil, user).Handler(ok)
	r := from("192.0.2.1")
	if got := record(h, r).Code; got != http.StatusUnauthorized {
		t.Errorf("got status %d, want 401", got)
	}
	r.URL.Path = "/healthz"
	w := record(h, r)
	if got := limits(w.Header()); w.Code != http.StatusOK || got != "" || l.asked() != "" {
		t.Errorf("got status %d and %q, want 200, no fields, and no call", w.Code, got)
	}
	if v := check(t, newMiddleware(t, l, nil, user), r); !v.Allowed || v.Status != 0 || len(v.Policies) != 0 {
		t.Errorf("got %+v, want it allowed by no policy", v)
	}
}

// TestRefusedHasNoDelay: only served requests are held.
func TestRefusedHasNoDelay(t *testing.T) {
	p := ratelimit.Policy{Name: "q", Key: apiKey, Limit: algorithms.LeakyBucket(1, time.Second).WithBurst(5)}
	m := newMiddleware(t, newStill(t), nil, p)
	for range 2 {
		v, err := m.Check(with(from("192.0.2.1"), "X-API-Key", "guess"))
		if v.Allowed || v.Status != http.StatusUnauthorized || v.Delay != 0 || err == nil {
			t.Errorf("got %+v and error %v, want 401 without a delay", v, err)
		}
	}
}
