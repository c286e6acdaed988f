// Tests of route tables.

package middleware_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/penstock-go/penstock/algorithms"
	ratelimit "github.com/penstock-go/penstock/middleware"
)

// routeTable has an entry of each kind. Policies are named after what they are for.
func routeTable(t *testing.T, l algorithms.Limiter, log *logRecords) *ratelimit.RouteTable {
	t.Helper()
	routes, err := ratelimit.NewRouteTable(l, &ratelimit.Options{Logger: log.logger()}, ratelimit.Routes{
		"GET /v1/orders/{id}": {byIP("read", hourly)},
		"/v1/orders/{id}":     {byIP("write", hourly), forAll("all-writes", hourly)},
		"/healthz":            {},
		"*":                   {byIP("rest", hourly)},
	})
	if err != nil {
		t.Fatal(err)
	}
	return routes
}

// TestRouteTable: the most specific entry applies, and no other.
func TestRouteTable(t *testing.T) {
	const both = "write:ip=192.0.2.1 all-writes:const=all"
	tests := []struct{ method, target, asks string }{
		{"GET", "/v1/orders/1", "read:ip=192.0.2.1"}, {"HEAD", "/v1/orders/2", "read:ip=192.0.2.1"},
		{"POST", "/v1/orders/1", both}, {"DELETE", "/v1/orders/3", both},
		{"GET", "/healthz", ""}, {"GET", "/v1/search", "rest:ip=192.0.2.1"}, {"GET", "/nothing", "rest:ip=192.0.2.1"},
	}
	routers := map[string]func(*ratelimit.RouteTable) http.Handler{
		"chi": func(table *ratelimit.RouteTable) http.Handler {
			r := chi.NewRouter()
			r.Use(table.Handler)
			r.Route("/v1", func(r chi.Router) {
				r.Get("/search", ok)
				for _, method := range []string{"GET", "POST", "DELETE"} {
					r.Method(method, "/orders/{id}", ok)
				}
			})
			r.Get("/healthz", ok)
			return r
		},
		"mux": func(table *ratelimit.RouteTable) http.Handler {
			mux := http.NewServeMux()
			for _, pattern := range []string{"GET /v1/orders/{id}", "/v1/orders/{id}", "/v1/search", "/healthz"} {
				mux.Handle(pattern, ok)
			}
			return table.Around(mux)
		},
	}
	for name, router := range routers {
		l, log := &spy{Limiter: newStill(t)}, new(logRecords)
		h := router(routeTable(t, l, log))
		for _, tt := range tests {
			r := httptest.NewRequest(tt.method, tt.target, nil)
			record(h, r)
			if got := l.asked(); got != tt.asks {
				t.Errorf("%s: %s %s asks %q, want %q", name, tt.method, tt.target, got, tt.asks)
			}
		}
	}
}

// TestRouteTableWithoutRest: what has no entry is unlimited.
func TestRouteTableWithoutRest(t *testing.T) {
	routes, err := ratelimit.NewRouteTable(newStill(t), nil, ratelimit.Routes{"/limited": {byIP("p", algorithms.Nobody())}})
	if err != nil {
		t.Fatal(err)
	}
	r := chi.NewRouter()
	r.Use(routes.Handler)
	r.Get("/limited", ok)
	r.Get("/free", ok)
	for path, want := range map[string]int{"/limited": 429, "/free": 200, "/nothing": 404} {
		if got := record(r, httptest.NewRequest("GET", path, nil)).Code; got != want {
			t.Errorf("%s: got %d, want %d", path, got, want)
		}
	}
	uncovered, err := routes.Uncovered(r)
	if err != nil || !slices.Equal(uncovered, []string{"GET /free"}) {
		t.Errorf("got %q, %v uncovered, want GET /free", uncovered, err)
	}
}

// TestRouteTableVerify: templates that no route has are an error in chi, and a warning in front of a mux.
func TestRouteTableVerify(t *testing.T) {
	log := new(logRecords)
	routes := routeTable(t, newStill(t), log)
	r := chi.NewRouter()
	r.Post("/v1/orders/{id}", ok)
	r.Mount("/v1/admin", chi.NewRouter())
	checkLines(t, routes.Verify(r), []string{`"/healthz" & no such route`, `"GET /v1/orders/{id}" & no such route`})
	r.Get("/v1/orders/{id}/", ok)
	r.Get("/healthz", ok)
	if err := routes.Verify(r); err != nil {
		t.Errorf("got %v, want no error", err)
	}
	if uncovered, err := routes.Uncovered(r); err != nil || len(uncovered) != 0 {
		t.Errorf("got %q, %v uncovered, want none: the rest has an entry", uncovered, err)
	}

	mux := http.NewServeMux()
	mux.Handle("GET /v1/orders/{id}", ok)
	mux.Handle("/healthz", ok)
	if err := routes.Verify(mux); err != nil {
		t.Errorf("got %v, want no error", err)
	}
	lines := log.lines()
	if len(lines) != 1 || !strings.Contains(lines[0], "route=/v1/orders/{id}") || !strings.Contains(lines[0], "level=WARN") {
		t.Errorf("got log %q, want a warning of /v1/orders/{id}", lines)
	}
	if _, err := routes.Uncovered(mux); err == nil {
		t.Error("a mux tells its routes, want an error")
	}
}

// TestRouteTableVerifyPatterns: every kind of pattern that a mux has is found there.
func TestRouteTableVerifyPatterns(t *testing.T) {
	log, mux, routes := new(logRecords), http.NewServeMux(), ratelimit.Routes{}
	for i, pattern := range []string{"/", "/a/{$}", "GET /b/{id}/c", "POST /d/{rest...}", "example.com/e", "PUT example.com/f/"} {
		mux.Handle(pattern, ok)
		routes[pattern] = []ratelimit.Policy{byIP(fmt.Sprint("p", i), hourly)}
	}
	table, err := ratelimit.NewRouteTable(newStill(t), &ratelimit.Options{Logger: log.logger()}, routes)
	if err != nil {
		t.Fatal(err)
	}
	if err := table.Verify(mux); err != nil || log.lines() != nil {
		t.Errorf("got %v, or a warning, want none", err)
	}
}

// TestRouteTableVerifyPaths: an entry without a method is known where a mux has the path with any that has no entry of
// its own.
func TestRouteTableVerifyPaths(t *testing.T) {
	log, mux := new(logRecords), http.NewServeMux()
	for _, pattern := range []string{"POST /a", "GET /b", "DELETE /b", "PUT example.com/c/{id}", "GET /d"} {
		mux.Handle(pattern, ok)
	}
	policies := []ratelimit.Policy{byIP("p", hourly)}
	table, err := ratelimit.NewRouteTable(newStill(t), &ratelimit.Options{Logger: log.logger()}, ratelimit.Routes{
		"/a": policies, "GET /b": policies, "/b": policies, "example.com/c/{id}": policies, "GET /d": policies, "/d": policies,
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := table.Verify(mux); err != nil {
		t.Error(err)
	}
	if lines := log.lines(); len(lines) != 1 || !strings.Contains(lines[0], "route=/d") {
		t.Errorf("got log %q, want a warning of /d alone, which no request has", lines)
	}
}

// TestRouteTableMistakes are all reported at once.
func TestRouteTableMistakes(t *testing.T) {
	_, err := ratelimit.NewRouteTable(newStill(t), nil, ratelimit.Routes{
		"orders": {byIP("a", hourly)}, "/v1/x": {byIP("", hourly), {Name: "b"}}, "*": {byIP("c d", hourly)},
	})
	checkLines(t, err, []string{`route "*" & policy "c d"`, `route "/v1/x" & policy ""`, `route "/v1/x" & policy "b" & zero Key`,
		`route "/v1/x" & policy "b" & zero Limit`, `route "orders" & a template is`})
	_, err = ratelimit.NewRouteTable(newStill(t), nil, nil)
	checkLines(t, err, []string{"there are no routes"})
	for name, mount := range map[string]func(*ratelimit.RouteTable){
		"no next": func(rt *ratelimit.RouteTable) { rt.Handler(nil) },
		"no mux":  func(rt *ratelimit.RouteTable) { rt.Around(nil) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			mount(routeTable(t, newStill(t), new(logRecords)))
		}()
	}
}

// TestRouteTableCloses all entries at once.
func TestRouteTableCloses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := slowToSettle(newMemory(t), func(context.Context) error { time.Sleep(800 * ms); return nil })
		late := lateByIP("late", daily, 2)
		routes, err := ratelimit.NewRouteTable(slow, nil, ratelimit.Routes{"/a": {late}, "/b": {late}, "*": {late}})
		if err != nil {
			t.Fatal(err)
		}
		mux := http.NewServeMux()
		mux.Handle("/a", settling(t, "late", 1))
		mux.Handle("/b", settling(t, "late", 1))
		h, start := routes.Around(mux), time.Now()
		record(h, httptest.NewRequest("GET", "/a", nil))
		record(h, httptest.NewRequest("GET", "/b", nil))
		if err := routes.Close(context.Background()); err != nil || time.Since(start) != 800*ms {
			t.Errorf("closed after %v, %v; want 800 ms", time.Since(start), err)
		}
		for _, target := range []string{"/a", "/b", "/c"} {
			if w := record(h, httptest.NewRequest("GET", target, nil)); w.Code != http.StatusServiceUnavailable {
				t.Errorf("%s: got %d, want 503", target, w.Code)
			}
		}
	})
}
