// Tests of events about Middlewares, and of limiters that wrap others.

package tests

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/algorithms/shared"
	"github.com/penstock-go/penstock/internal/redistest"
	"github.com/penstock-go/penstock/middleware"
)

// TestObserversInOrder: each event reaches all observers in their order, with its Middleware.
func TestObserversInOrder(t *testing.T) {
	var got []string
	observer := func(name string) ratelimit.Observer {
		return ratelimit.ObserverFunc(func(_ context.Context, e ratelimit.Event) {
			limiter, _ := e.Middleware.Limiter()
			got = append(got, fmt.Sprint(name, " ", e.Kind, " ", limiter, " ", len(e.Middleware.Policies()), " ", len(e.Middleware.TopDenied("p", 9))))
		})
	}
	observers := []ratelimit.Observer{observer("a"), observer("b")}
	m := newMiddleware(t, newStill(t), &ratelimit.Options{Observers: observers, LimiterName: "mine"}, byIP("p", perHour(1)))
	observers[0] = nil // it is the Middleware's own slice that counts
	_, _ = m.Check(from("192.0.2.1"))
	_, _ = m.Check(from("192.0.2.1"))
	if err := m.Update(byIP("p", perHour(1)), byIP("q", hourly)); err != nil {
		t.Fatal(err)
	}
	if err := m.Update(); err == nil {
		t.Error("got no error of an Update without policies")
	}
	for range 2 {
		if err := m.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if err := m.Update(byIP("p", hourly)); !errors.Is(err, ratelimit.ErrClosed) {
		t.Errorf("got %v of an Update after Close, want ErrClosed", err)
	}
	want := []string{"registered mine 1 0", "decided mine 1 0", "decided mine 1 1", "registered mine 2 1", "unregistered mine 2 1"}
	for i, event := range want {
		if len(got) != 2*len(want) || got[2*i] != "a "+event || got[2*i+1] != "b "+event {
			t.Fatalf("got %q, want each of %q by a, then by b", got, want)
		}
	}
}

// TestNewRegistersNothingWithAnError: observers see no Middleware that New does not return.
func TestNewRegistersNothingWithAnError(t *testing.T) {
	seen := new(eventLog)
	if _, err := ratelimit.New(newStill(t), &ratelimit.Options{Observers: []ratelimit.Observer{seen}}, ratelimit.Policy{Name: "!"}); err == nil || len(seen.events) != 0 {
		t.Errorf("got %v and %d events, want an error and none", err, len(seen.events))
	}
}

// TestPooledRequestsForgetTheirStart: a Middleware without observers stamps denials with its own time, though the request
// before was another Middleware's.
func TestPooledRequestsForgetTheirStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		observed := newMiddleware(t, newMemory(t), &ratelimit.Options{Observers: []ratelimit.Observer{new(eventLog)}}, byIP("p", hourly))
		time.Sleep(5 * time.Hour)
		m := newMiddleware(t, newMemory(t), nil, byIP("p", algorithms.Nobody()))
		time.Sleep(time.Minute)
		for range 20 { // a pool may forget, too
			_, _ = observed.Check(from("192.0.2.1"))
			_, _ = m.Check(from("192.0.2.1"))
		}
		if got := m.TopDenied("p", 1); len(got) != 1 || !got[0].First.Equal(time.Now()) || !got[0].Last.Equal(time.Now()) {
			t.Errorf("got %+v, want denials at %v", got, time.Now())
		}
	})
}

// A wrapper is a limiter around another, as one that traces.
type wrapper struct{ around algorithms.Limiter }

func (w *wrapper) Allow(ctx context.Context, checks []algorithms.Check) error {
	return w.around.Allow(ctx, checks)
}

func (w *wrapper) Unwrap() algorithms.Limiter { return w.around }

// A veil wraps a limiter without Unwrap.
type veil struct{ algorithms.Limiter }

// TestWrappedLimiters: a Middleware looks through Unwrap for a Memory, and for the name of the limiter.
func TestWrappedLimiters(t *testing.T) {
	memory := newStill(t)
	dead := redistest.Script(nil, redistest.Fail(errors.New("refused")))
	redis := newShared(t, dead, shared.Options{})
	for _, tt := range []struct {
		name     string
		limiter  algorithms.Limiter
		given    string
		want     string
		degraded bool
		outcome  string
	}{
		{"A Memory.", memory, "", "memory", false, "allowed"},
		{"A wrapped Memory.", &wrapper{memory}, "", "memory", false, "allowed"},
		{"A Memory that is wrapped twice.", &wrapper{&wrapper{memory}}, "", "memory", false, "allowed"},
		{"A Memory behind a veil.", veil{memory}, "", "memory", true, "degraded_allowed"},
		{"A wrapper of nothing.", &wrapper{around: limiterFunc(memory.Allow)}, "", "memory", true, "degraded_allowed"},
		{"A shared limiter without Redis.", redis, "", "redis", true, "degraded_allowed"},
		{"A wrapped shared limiter.", &wrapper{redis}, "", "redis", true, "degraded_allowed"},
		{"A name that is given.", &wrapper{redis}, "eu-west", "eu-west", true, "degraded_allowed"},
		{"A name that is given to a Memory.", memory, "mine", "mine", false, "allowed"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := newMiddleware(t, tt.limiter, &ratelimit.Options{LimiterName: tt.given, Logger: quiet}, byIP("p", perHour(1000)))
			name, limiter := m.Limiter()
			if name != tt.want || limiter != tt.limiter {
				t.Errorf("got limiter %q %v, want %q and the limiter itself", name, limiter, tt.want)
			}
			v, err := m.Check(from("192.0.2.1"))
			if err != nil || !v.Allowed || v.Degraded != tt.degraded || v.Policies[0].Outcome.String() != tt.outcome {
				t.Errorf("got %+v and %v, want degraded %t and %s", v, err, tt.degraded, tt.outcome)
			}
		})
	}
}

// TestWrappedRedis: with a real Redis, a wrapped shared limiter is not degraded.
func TestWrappedRedis(t *testing.T) {
	server := redistest.Start(t)
	m := newMiddleware(t, &wrapper{newShared(t, server.Client(), shared.Options{})}, guarding(), byIP("p", perHour(1)))
	for i, want := range []string{"allowed", "denied"} {
		v, err := m.Check(from("192.0.2.1"))
		if err != nil || v.Degraded || v.Source() != algorithms.Shared || v.Policies[0].Outcome.String() != want {
			t.Errorf("request %d: got %+v and %v, want %s by Redis", i, v, err, want)
		}
	}
}
