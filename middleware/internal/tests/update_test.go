package tests

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/headers"
	"github.com/penstock-go/penstock/keyfunc"
	"github.com/penstock-go/penstock/middleware"
	"github.com/penstock-go/penstock/middleware/console"
	"github.com/penstock-go/penstock/middleware/internal/problem"
)

// Update treats policies as New does, and keeps their counts.
func TestUpdate(t *testing.T) {
	m := newMiddleware(t, newStill(t), &ratelimit.Options{Headers: headers.Draft}, byIP("p", algorithms.TokenBucket(2, time.Hour)))
	h := m.Handler(ok)
	for _, want := range []int{200, 200, 429} {
		if w := record(h, from("192.0.2.1")); w.Code != want {
			t.Fatalf("got %d, want %d", w.Code, want)
		}
	}
	if err := m.Update(byIP("p", hourly), byIP("q", algorithms.Nobody()), ratelimit.Policy{Name: "keys", Key: apiKey, Limit: hourly}); err != nil {
		t.Fatal(err)
	}
	w := record(h, from("192.0.2.1"))
	if got := w.Header().Get("WWW-Authenticate"); w.Code != http.StatusUnauthorized || got != `APIKey header="X-Api-Key"` {
		t.Errorf("got %d %q, want 401 with the challenge of the new key", w.Code, got)
	}
	w = record(h, with(from("192.0.2.1"), "X-API-Key", "good-key"))
	if want := string(problem.Body(http.StatusForbidden, "no-requests-allowed", "q")); w.Code != http.StatusForbidden || w.Body.String() != want {
		t.Errorf("got %d %s, want 403 %s", w.Code, w.Body, want)
	}
	if err := m.Update(byIP("p", hourly)); err != nil {
		t.Fatal(err)
	}
	if got := record(h, from("192.0.2.1")).Header().Get("RateLimit"); got != `"p";r=7;t=2520` {
		t.Errorf("got RateLimit %s, want 7 left of 10; two were used before", got)
	}
}

// Update reports every misconfiguration that New reports; then the old policies stay in force.
func TestUpdateMistakes(t *testing.T) {
	m := newMiddleware(t, newStill(t), nil, byIP("p", hourly))
	for _, tt := range mistakes {
		if tt.options.Headers != 0 || tt.options.ClientIP != (keyfunc.Key{}) || tt.options.Observers != nil {
			continue
		}
		t.Run(tt.name, func(t *testing.T) {
			checkLines(t, m.Update(tt.policies...), tt.want)
			if v, err := m.Check(from("192.0.2.1")); err != nil || len(v.Policies) != 1 || v.Policies[0].Name != "p" {
				t.Errorf("got %+v, error %v, want the old policy", v, err)
			}
		})
	}
}

// A request is decided and answered by the policies of one Update, also if another Update comes in between.
func TestUpdateWhileDeciding(t *testing.T) {
	memory := newStill(t)
	var m *ratelimit.Middleware
	limiter := limiterFunc(func(ctx context.Context, checks []algorithms.Check) error {
		if err := m.Update(byIP("after", hourly)); err != nil {
			t.Error(err)
		}
		return memory.Allow(ctx, checks)
	})
	m = newMiddleware(t, limiter, nil, byIP("before", algorithms.Nobody()))
	w := record(m.Handler(ok), from("192.0.2.1"))
	if want := string(problem.Body(http.StatusForbidden, "no-requests-allowed", "before")); w.Body.String() != want {
		t.Errorf("got %s, want %s", w.Body, want)
	}
}

// Two sets of policies that differ in everything are never mixed.
func TestUpdateConcurrently(t *testing.T) {
	deny := [2][]ratelimit.Policy{{byIP("a", algorithms.Nobody())}, {byIP("b", algorithms.Nobody()), byIP("c", algorithms.Nobody())}}
	m := newMiddleware(t, newStill(t), nil, deny[0]...)
	h, wants := m.Handler(ok), map[string]bool{string(problem.Body(http.StatusForbidden, "no-requests-allowed", "a")): true, string(problem.Body(http.StatusForbidden, "no-requests-allowed", "b", "c")): true}
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := range 300 {
			if err := m.Update(deny[i%2]...); err != nil {
				t.Error(err)
			}
		}
	})
	for range 4 {
		wg.Go(func() {
			for range 300 {
				if w := record(h, from("192.0.2.1")); !wants[w.Body.String()] {
					t.Errorf("got %s, want one set's", w.Body)
				}
			}
		})
	}
	wg.Wait()
}

// TestPoliciesAreCopied: later changes by the caller have no effect.
func TestPoliciesAreCopied(t *testing.T) {
	candidate := hourly
	p := byPlan("p", hourly, map[string]algorithms.Limit{"t": hourly})
	p.Candidate = &candidate
	m := newMiddleware(t, newStill(t), &ratelimit.Options{}, p)
	p.Tiers["t"], candidate = algorithms.Nobody(), algorithms.Nobody()
	for _, l := range ratelimit.Must(console.New(m).Who(context.Background(), console.Subject{Policy: "p", Key: "usr=me"}))[0].Limits {
		if l.Limit != hourly {
			t.Errorf("got %v for %v, want the limit that New was given", l.Limit, l.Reason)
		}
	}
}

// TestUpdateAfterClose: a closed Middleware stays closed, and its observers do not see it again.
func TestUpdateAfterClose(t *testing.T) {
	seen := new(eventLog)
	m := newMiddleware(t, newStill(t), &ratelimit.Options{Observers: []ratelimit.Observer{seen}}, byIP("p", hourly))
	for range 2 {
		if err := m.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if err := m.Update(byIP("q", hourly)); !errors.Is(err, ratelimit.ErrClosed) {
		t.Errorf("got %v, want ErrClosed", err)
	}
	if r, u := len(seen.of(ratelimit.Registered)), len(seen.of(ratelimit.Unregistered)); r != 1 || u != 1 {
		t.Errorf("got %d Registered and %d Unregistered, want one of each", r, u)
	}
}
