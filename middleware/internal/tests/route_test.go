package tests

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/go-chi/chi/v5"

	"github.com/penstock-go/penstock/keyfunc"
	"github.com/penstock-go/penstock/middleware"
)

// byRoute returns a middleware for each client on each route, and the spy that sees its checks.
func byRoute(t *testing.T, route keyfunc.Key) (*ratelimit.Middleware, *spy) {
	l := &spy{Limiter: newStill(t)}
	return newMiddleware(t, l, nil, ratelimit.Policy{Name: "p", Key: keyfunc.Join(keyfunc.IP(nil), route), Limit: hourly}), l
}

// routers mount a middleware in every way that there is.
var routers = []struct {
	name    string
	order   string // the route of POST /v1/orders/{id}
	inside  bool   // the middleware sees matched requests only
	handler func(t *testing.T) (http.Handler, *spy)
}{
	{"chi, root.Use", "POST%20/v1/orders/%7Bid%7D", false, func(t *testing.T) (http.Handler, *spy) {
		m, l := byRoute(t, keyfunc.Route())
		r := chi.NewRouter()
		r.Use(m.Handler)
		r.Post("/v1/orders/{id}", ok)
		r.Get("/v1/orders/{id}", ok)
		return r, l
	}},
	{"chi, With", "POST%20/v1/orders/%7Bid%7D", true, func(t *testing.T) (http.Handler, *spy) {
		m, l := byRoute(t, keyfunc.Route())
		r := chi.NewRouter()
		r.With(m.Handler).Post("/v1/orders/{id}", ok)
		r.With(m.Handler).Get("/v1/orders/{id}", ok)
		return r, l
	}},
	{"chi, Use in a sub-router", "POST%20/v1/orders/%7Bid%7D", false, func(t *testing.T) (http.Handler, *spy) {
		m, l := byRoute(t, keyfunc.Route())
		r := chi.NewRouter()
		r.Route("/v1", func(r chi.Router) {
			r.Use(m.Handler)
			r.Post("/orders/{id}", ok)
			r.Get("/orders/{id}", ok)
		})
		return r, l
	}},
	{"chi, Use in a mounted router", "POST%20/v1/orders/%7Bid%7D", false, func(t *testing.T) (http.Handler, *spy) {
		m, l := byRoute(t, keyfunc.Route())
		sub := chi.NewRouter()
		sub.Use(m.Handler)
		sub.Post("/{id}", ok)
		sub.Get("/{id}", ok)
		r := chi.NewRouter()
		r.Mount("/v1/orders", sub)
		return r, l
	}},
	{"ServeMux, around it", "POST%20/v1/orders/%7Bid%7D", false, func(t *testing.T) (http.Handler, *spy) {
		mux := http.NewServeMux()
		mux.Handle("POST /v1/orders/{id}", ok)
		mux.Handle("GET /v1/orders/{id}", ok)
		m, l := byRoute(t, keyfunc.RouteIn(mux))
		return m.Handler(mux), l
	}},
	{"ServeMux, in its handlers", "POST%20/v1/orders/%7Bid%7D", true, func(t *testing.T) (http.Handler, *spy) {
		m, l := byRoute(t, keyfunc.Route())
		mux := http.NewServeMux()
		mux.Handle("POST /v1/orders/{id}", m.Handler(ok))
		mux.Handle("GET /v1/orders/{id}", m.Handler(ok))
		return mux, l
	}},
}

// request returns a request as a server reads it off the wire.
func request(t *testing.T, method, target string) *http.Request {
	t.Helper()
	u, err := url.ParseRequestURI(target)
	if err != nil {
		t.Fatal(err)
	}
	r := from("192.0.2.1")
	r.Method, r.URL, r.RequestURI = method, u, target
	return r
}

// TestRoutes: a route is one bucket, whatever the path. All requests without a route share one bucket.
func TestRoutes(t *testing.T) {
	for _, tt := range routers {
		t.Run(tt.name, func(t *testing.T) {
			h, l := tt.handler(t)
			for range 4 {
				for _, path := range []string{"/v1/orders/1", "/v1/orders/2", "/v1/orders/a%20b?x=1", "/v1/orders/a%2Fb"} {
					record(h, request(t, http.MethodPost, path))
				}
			}
			if w := record(h, request(t, http.MethodPost, "/v1/orders/17")); w.Code != http.StatusTooManyRequests {
				t.Errorf("got status %d for a new id, want 429", w.Code)
			}
			if w := record(h, request(t, http.MethodGet, "/v1/orders/17")); w.Code != http.StatusOK {
				t.Errorf("got status %d for another route, want 200", w.Code)
			}
			keys := distinct(l.asked())
			if len(keys) != 2 || !keys["p:ip=192.0.2.1|rt="+tt.order] {
				t.Errorf("got keys %v, want two, of them rt=%s", keys, tt.order)
			}
		})
	}
}

// TestUnmatched: scans, variants of paths and made-up methods open no fresh buckets.
func TestUnmatched(t *testing.T) {
	paths := []string{"/none", "/a", "/b", "/c/d", "//a", "/a//b", "/../x", "/v1", "/v1/", "/v1/orders/", "/v1/orders//1", "/V1/orders/1"}
	for _, tt := range routers {
		t.Run(tt.name, func(t *testing.T) {
			h, l := tt.handler(t)
			for _, path := range paths {
				for _, method := range []string{"GET", "POST", "DELETE", "PURGE", "X1", "X2"} {
					record(h, request(t, method, path))
				}
			}
			keys := distinct(l.asked())
			for key := range keys {
				if strings.Contains(key, "none") || strings.Contains(key, "X1") || strings.Contains(key, "//") {
					t.Errorf("got key %s, want none of what the client made up", key)
				}
			}
			if len(keys) > 5 {
				t.Errorf("got %d keys, want one, and those of the routes:\n%v", len(keys), keys)
			}
			if tt.inside {
				return
			}
			if !strings.Contains(tt.name, "sub-router") && !strings.Contains(tt.name, "mounted") {
				if got := record(h, request(t, "GET", "/brand-new")).Code; got != http.StatusTooManyRequests {
					t.Errorf("got status %d for one more unknown path, want 429", got)
				}
			}
		})
	}
}

// distinct returns the set of a spy's checks.
func distinct(asked string) map[string]bool {
	keys := map[string]bool{}
	for _, key := range strings.FieldsFunc(asked, func(r rune) bool { return r == ' ' || r == ';' }) {
		keys[key] = true
	}
	return keys
}

// TestRedirectsOfTheMux: a path that the mux cleans costs as much as the clean path.
func TestRedirectsOfTheMux(t *testing.T) {
	mux := http.NewServeMux()
	mux.Handle("GET /a/{id}", ok)
	m, l := byRoute(t, keyfunc.RouteIn(mux))
	h := m.Handler(mux)
	for _, path := range []string{"/a/1", "//a/1", "/a//1", "/x/../a/1", "/a/./1", "/./a/1"} {
		record(h, request(t, http.MethodGet, path))
	}
	if keys := distinct(l.asked()); len(keys) != 1 || !keys["p:ip=192.0.2.1|rt=GET%20/a/%7Bid%7D"] {
		t.Errorf("got keys %v, want one", keys)
	}
}
