package middleware

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/keyfunc"
)

// Routes say which policies apply to which routes, by template: as
// "GET /v1/orders/{id}", as "/v1/search" for every method that has no entry of
// its own, and as "*" for whatever has none at all, what no route matches
// included. Of several only the most specific applies. A route with no policies
// is unlimited.
//
// Templates are what the router calls the route: chi's patterns as
// keyfunc.Route shows them, or a ServeMux's patterns as they were registered.
type Routes map[string][]Policy

// anyRoute is the template of whatever has no entry.
const anyRoute = "*"

// A RouteTable enforces [Routes]. It is mounted once, in front of the router.
// It is safe for concurrent use.
//
// Not for a few routes, which read better with their [Middleware] around each,
// nor inside of a middleware with the same policies: a request would be charged
// by both.
type RouteTable struct {
	byKey  map[string]*Middleware // by the key of the template; nil for unlimited routes
	others *Middleware            // for whatever has no entry; may be nil
	all    []*Middleware          // none of them nil
	routes Routes
	logger *slog.Logger
}

// NewRouteTable returns a table of routes, each of whose entries is a
// [Middleware] with the limiter and the options. Policies of one name count
// together wherever they stand. The error names every mistake.
func NewRouteTable(limiter algorithms.Limiter, o *Options, routes Routes) (*RouteTable, error) {
	t := &RouteTable{byKey: make(map[string]*Middleware, len(routes)), routes: maps.Clone(routes), logger: slog.Default()}
	if o != nil && o.Logger != nil {
		t.logger = o.Logger
	}
	var errs []error
	if len(routes) == 0 {
		errs = append(errs, errors.New("middleware: there are no routes"))
	}
	for _, template := range slices.Sorted(maps.Keys(routes)) {
		var m *Middleware
		if len(routes[template]) > 0 {
			var err error
			m, err = New(limiter, o, routes[template]...)
			errs = append(errs, lines(fmt.Sprintf("middleware: route %q", template), err)...)
			t.all = append(t.all, m)
		}
		if template == anyRoute {
			t.others = m
			continue
		}
		if !strings.Contains(template, "/") {
			errs = append(errs, fmt.Errorf("middleware: route %q: a template is a path, a method and a path, or *", template))
		}
		t.byKey[keyfunc.RouteKey(template)] = m
	}
	if errs != nil {
		return nil, errors.Join(errs...)
	}
	return t, nil
}

// Handler returns a handler for chi's Use: it serves with next what the
// policies of the request's route allow. It panics if next is nil.
func (t *RouteTable) Handler(next http.Handler) http.Handler {
	return t.handler(keyfunc.Route(), next)
}

// Around returns a handler that does the same in front of a mux, which it
// panics without.
func (t *RouteTable) Around(mux *http.ServeMux) http.Handler {
	return t.handler(keyfunc.RouteIn(mux), mux)
}

func (t *RouteTable) handler(route keyfunc.Key, next http.Handler) http.Handler {
	if err := route.Validate(); err != nil || next == nil {
		panic("middleware: there is no router")
	}
	limited := make(map[*Middleware]http.Handler)
	for _, m := range t.all {
		limited[m] = m.Handler(next)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var room [128]byte
		key, err := route.Append(room[:0], r)
		if err != nil { // a route never is
			key = nil
		}
		if m := t.find(key); m != nil {
			limited[m].ServeHTTP(w, r)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// find returns the middleware of a route's key; nil for none.
func (t *RouteTable) find(key []byte) *Middleware {
	if m, ok := t.byKey[string(key)]; ok {
		return m
	}
	// Without its method: what keyfunc.RouteKey says of the path alone.
	if _, path, ok := bytes.Cut(key, []byte("%20")); ok {
		var room [128]byte
		if m, ok := t.byKey[string(append(append(room[:0], "rt="...), path...))]; ok {
			return m
		}
	}
	return t.others
}

// Middlewares returns the middleware of each entry that has policies.
func (t *RouteTable) Middlewares() []*Middleware { return slices.Clone(t.all) }

// Verify reports templates of the table that are no route of the router, and
// so never apply. Call it at start, when all routes are registered. For chi
// they are an error; a ServeMux is asked about an example of each, and what it
// does not know is logged as a warning.
func (t *RouteTable) Verify(router http.Handler) error {
	known, tells := keyfunc.Templates(router)
	mux, isMux := router.(*http.ServeMux)
	var errs []error
	for _, template := range slices.Sorted(maps.Keys(t.routes)) {
		switch {
		case template == anyRoute:
		case tells && !slices.ContainsFunc(known, func(route string) bool { return appliesTo(template, route) }):
			errs = append(errs, fmt.Errorf("middleware: route %q: the router has no such route", template))
		case isMux && !t.knows(mux, template):
			t.logger.Warn("ratelimit: the mux seems to have no such route", "route", template)
		}
	}
	return errors.Join(errs...)
}

// Uncovered returns the routes of a chi router that have no entry in the table,
// for a test that wants none. The error says that the router does not tell its
// routes.
func (t *RouteTable) Uncovered(router http.Handler) ([]string, error) {
	known, tells := keyfunc.Templates(router)
	if !tells {
		return nil, fmt.Errorf("middleware: a %T does not tell its routes", router)
	}
	if _, ok := t.routes[anyRoute]; ok {
		return nil, nil
	}
	return slices.DeleteFunc(known, func(route string) bool {
		for template := range t.routes {
			if appliesTo(template, route) {
				return true
			}
		}
		return false
	}), nil
}

// appliesTo reports whether an entry applies to a route, if no other does.
func appliesTo(template, route string) bool {
	_, path, _ := strings.Cut(route, " ")
	return template == route || template == path
}

// knows reports whether the entry of a template applies to an example of it in a
// mux: one without a method also to those of patterns with one.
func (t *RouteTable) knows(mux *http.ServeMux, template string) bool {
	if method, path, ok := strings.Cut(template, " "); ok {
		return patternOf(mux, method, path) == template
	}
	return slices.ContainsFunc(methods, func(method string) bool {
		pattern := patternOf(mux, method, template)
		_, own := t.routes[pattern]
		return pattern == template || !own && appliesTo(template, pattern)
	})
}

var methods = []string{
	http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete,
	http.MethodOptions, http.MethodTrace,
}

// patternOf returns the pattern by which a mux would serve an example of a path
// with wildcards; "" if there is none.
func patternOf(mux *http.ServeMux, method, path string) string {
	host, path, _ := strings.Cut(strings.TrimSpace(path), "/")
	segments := strings.Split(path, "/")
	for i, s := range segments {
		if s == "{$}" {
			segments[i] = ""
		} else if strings.HasPrefix(s, "{") {
			segments[i] = "example"
		}
	}
	r, err := http.NewRequest(method, "http://"+host+"/"+strings.Join(segments, "/"), nil)
	if err != nil {
		return ""
	}
	_, pattern := mux.Handler(r)
	return pattern
}

// Close closes the middleware of every entry at once; see [Middleware.Close].
func (t *RouteTable) Close(ctx context.Context) error {
	errs := make([]error, len(t.all))
	var closing sync.WaitGroup
	for i, m := range t.all {
		closing.Go(func() { errs[i] = m.Close(ctx) })
	}
	closing.Wait()
	return errors.Join(errs...)
}
