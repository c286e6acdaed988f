// Tests of how findings begin and end.

package tests

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/keyfunc"
	"github.com/penstock-go/penstock/middleware"
)

var plenty = algorithms.TokenBucket(1e6, time.Second)

// wantFindings compares the present findings, e.g. "PS101 p".
func wantFindings(t *testing.T, m *ratelimit.Middleware, when, want string) {
	t.Helper()
	if got := findings(m); got != want {
		t.Errorf("%s: got findings %q, want %q", when, got, want)
	}
}

// TestForwardingEnds: sixteen direct requests in a row end PS101, and its return is news.
func TestForwardingEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log logRecords
		m := newMiddleware(t, newMemory(t), &ratelimit.Options{Logger: log.logger()}, byIP("p", plenty))
		send := func(n int, forwarded bool) {
			for range n {
				r := from("192.0.2.1")
				if forwarded {
					with(r, "X-Forwarded-For", "198.51.100.1")
				}
				record(m.Handler(ok), r)
			}
		}
		send(15, true)
		wantFindings(t, m, "after 15 forwarded requests", "")
		send(1, true)
		wantFindings(t, m, "after 16", "PS101 p")
		send(15, false)
		wantFindings(t, m, "after 15 direct ones", "PS101 p")
		send(1, true)
		send(15, false)
		wantFindings(t, m, "after a forwarded one and 15 direct ones", "PS101 p")
		send(1, false)
		wantFindings(t, m, "after 16 direct ones in a row", "")
		send(16, true)
		wantFindings(t, m, "after 16 forwarded ones again", "PS101 p")
		if got := log.lines(); len(got) != 2 {
			t.Errorf("got %q, want a line for each beginning", got)
		}
	})
}

// TestUnknownRouteEnds: PS104 ends as soon as a route is known, and does not return for other paths.
func TestUnknownRouteEnds(t *testing.T) {
	m := newMiddleware(t, newMemory(t), &ratelimit.Options{Logger: quiet},
		ratelimit.Policy{Name: "p", Key: keyfunc.Join(keyfunc.IP(nil), keyfunc.Route()), Limit: plenty})
	mux := http.NewServeMux()
	mux.Handle("GET /known", m.Handler(ok))
	for range 100 {
		record(m.Handler(ok), from("192.0.2.1"))
	}
	wantFindings(t, m, "after 100 requests without a route", "PS104 p")
	record(mux, request(t, "GET", "/known"))
	wantFindings(t, m, "after one with a route", "")
	for range 200 {
		record(m.Handler(ok), from("192.0.2.1"))
	}
	wantFindings(t, m, "after 200 more without", "")
}

// TestGuessesHaveNoRoute: the key of a guess is an address, which says nothing of routes.
func TestGuessesHaveNoRoute(t *testing.T) {
	p := ratelimit.Policy{Name: "p", Key: keyfunc.Join(new(keyring).key(), keyfunc.Route()), Limit: algorithms.TokenBucket(500, time.Hour)}
	m := newMiddleware(t, newStill(t), &ratelimit.Options{Logger: quiet}, p)
	for range 501 {
		record(m.Handler(ok), presenting("192.0.2.9", "guess"))
	}
	for range 100 {
		record(m.Handler(ok), presenting("192.0.2.1", "valid"))
	}
	wantFindings(t, m, "after a denied guess and 100 requests without a route", "PS104 p")
}

// TestFindingsEndAfterAnHour without their cause. Then their return is news; before, it is not.
func TestFindingsEndAfterAnHour(t *testing.T) {
	expensive := byIP("p", algorithms.TokenBucket(5, time.Second))
	expensive.Cost = costOf(6)
	for _, tt := range []struct {
		name   string
		policy ratelimit.Policy
		want   string
		cause  func(*ratelimit.Middleware)
	}{
		{"PS105", byIP("p", plenty), "PS105 p", func(m *ratelimit.Middleware) { record(m.Handler(m.Handler(ok)), from("192.0.2.1")) }},
		{"PS107", expensive, "PS107 p", func(m *ratelimit.Middleware) { record(m.Handler(ok), from("192.0.2.1")) }},
		{"PS109", byPlan("p", plenty, map[string]algorithms.Limit{"gold": plenty}), "PS109 p",
			func(m *ratelimit.Middleware) { record(m.Handler(ok), onPlan(from("192.0.2.1"), "glod")) }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var log logRecords
				m := newMiddleware(t, newMemory(t), &ratelimit.Options{Logger: log.logger()}, tt.policy)
				time.Sleep(time.Second)
				began := time.Now()
				for range 3 {
					tt.cause(m)
					time.Sleep(time.Hour - time.Nanosecond)
					wantFindings(t, m, "nearly an hour after the cause", tt.want)
				}
				if got := m.Findings(); len(got) == 1 && !got[0].First.Equal(began) {
					t.Errorf("got First %v, want %v", got[0].First, began)
				}
				time.Sleep(time.Nanosecond)
				wantFindings(t, m, "an hour after the cause", "")
				if got := log.lines(); len(got) != 1 || !strings.Contains(got[0], "code="+tt.name) {
					t.Errorf("got %q, want one line", got)
				}
				again := time.Now()
				tt.cause(m)
				if got := m.Findings(); len(got) != 1 || !got[0].First.Equal(again) || len(log.lines()) != 1 {
					t.Errorf("got %+v after its return, want it new and logged", got)
				}
			})
		})
	}
}

// TestUpdateForgetsEndedFindings: a finding that had ended before an Update is news when it returns.
func TestUpdateForgetsEndedFindings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log logRecords
		p := byPlan("p", plenty, map[string]algorithms.Limit{"gold": plenty})
		m := newMiddleware(t, newMemory(t), &ratelimit.Options{Logger: log.logger()}, p)
		time.Sleep(time.Second)
		record(m.Handler(ok), onPlan(from("192.0.2.1"), "glod"))
		for range 24 {
			time.Sleep(time.Hour)
			if err := m.Update(p); err != nil {
				t.Fatal(err)
			}
		}
		again := time.Now()
		record(m.Handler(ok), onPlan(from("192.0.2.1"), "glod"))
		if got := m.Findings(); len(got) != 1 || !got[0].First.Equal(again) || len(log.lines()) != 2 {
			t.Errorf("got %+v, want a finding that is new and logged", got)
		}
	})
}

// TestUpdateKeepsWhatIsKnown: a finding that returns within an hour is no news, however often the policies are updated.
func TestUpdateKeepsWhatIsKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log logRecords
		p := byPlan("p", plenty, map[string]algorithms.Limit{"gold": plenty})
		m := newMiddleware(t, newMemory(t), &ratelimit.Options{Logger: log.logger()}, p)
		time.Sleep(time.Second)
		began := time.Now()
		for range 5 {
			record(m.Handler(ok), onPlan(from("192.0.2.1"), "glod"))
			if got := m.Findings(); len(got) != 1 || !got[0].First.Equal(began) {
				t.Errorf("got %+v, want one since %v", got, began)
			}
			for range 3 {
				time.Sleep(15 * time.Minute)
				if err := m.Update(p); err != nil {
					t.Fatal(err)
				}
				wantFindings(t, m, "after an Update", "")
			}
		}
		if got := log.lines(); len(got) != 1 {
			t.Errorf("got %q, want one line", got)
		}
	})
}

// TestUnknownTier: only a tier that Tiers lacks is a finding, and only where the tier would decide.
func TestUnknownTier(t *testing.T) {
	gold := map[string]algorithms.Limit{"gold": algorithms.TokenBucket(20, time.Hour)}
	own := byPlan("p", hourly, gold)
	own.LimitOf = func(*http.Request) (algorithms.Limit, error) { return algorithms.TokenBucket(30, time.Hour), nil }
	for _, tt := range []struct {
		name    string
		policy  ratelimit.Policy
		plan    string
		want    string
		unknown bool
		limit   int64
	}{
		{"A known tier.", byPlan("p", hourly, gold), "gold", "", false, 20},
		{"No tier.", byPlan("p", hourly, gold), "", "", false, 10},
		{"An unknown tier.", byPlan("p", hourly, gold), "glod", "PS109 p", true, 10},
		{"A policy without Tiers.", byPlan("p", hourly, nil), "glod", "", false, 10},
		{"LimitOf decides.", own, "glod", "", false, 30},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := newMiddleware(t, newStill(t), &ratelimit.Options{Logger: quiet}, tt.policy)
			v, _ := m.Check(onPlan(from("192.0.2.1"), tt.plan))
			if p := v.Policies[0]; p.UnknownTier != tt.unknown || p.Limit.Requests() != tt.limit || tt.unknown && p.Tier != "" {
				t.Errorf("got %+v, want unknown %t and %d requests", p, tt.unknown, tt.limit)
			}
			wantFindings(t, m, "after the request", tt.want)
		})
	}
}

// byOutcome counts failures, and keeps no status in the way.
func byOutcome() ratelimit.Policy {
	p := byIP("p", plenty)
	p.ChargeIf = func(status int) bool { return status >= 400 }
	return p
}

// TestSilentOutcomes: the first hundred outcomes without a written status are PS110, which a written status ends for good.
func TestSilentOutcomes(t *testing.T) {
	ended, end := context.WithCancel(context.Background())
	end()
	gone := func() *http.Request { return from("192.0.2.1").WithContext(ended) }
	written := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) })
	panics := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	m := newMiddleware(t, newMemory(t), &ratelimit.Options{Logger: quiet}, byOutcome())
	serve := func(n int, h http.Handler, r *http.Request) {
		for range n {
			func() {
				defer func() { _ = recover() }()
				record(m.Handler(h), r)
			}()
		}
	}
	serve(99, ok, from("192.0.2.1"))
	wantFindings(t, m, "after 99 silent outcomes", "")
	serve(3, ok, gone())
	serve(3, panics, from("192.0.2.1"))
	wantFindings(t, m, "after hang-ups and panics, which show nothing", "")
	serve(1, ok, from("192.0.2.1"))
	wantFindings(t, m, "after the hundredth silent one", "PS110 p")
	serve(1, ok, gone())
	serve(1, panics, from("192.0.2.1"))
	wantFindings(t, m, "after a hang-up and a panic", "PS110 p")
	serve(1, written, from("192.0.2.1"))
	wantFindings(t, m, "after a written status", "")
	serve(200, ok, from("192.0.2.1"))
	wantFindings(t, m, "after 200 silent outcomes more", "")
}
