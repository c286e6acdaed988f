// The handlers of a replay: the middlewares of a service without its work.

package replay

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/go-chi/chi/v5"
	chimiddleware "github.com/go-chi/chi/v5/middleware"

	ratelimit "github.com/penstock-go/penstock/middleware"
)

// A handler is what Middleware.Handler returns in a replay. It neither answers nor holds a
// request: a log has its response already.
type handler struct {
	engine *engine
	m      *ratelimit.Middleware
	next   http.Handler
}

// ServeHTTP decides a request. It passes an admitted request on to handlers that do no work.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	e := h.engine
	v, _ := h.m.Check(r)                          // an error is in the status
	if v.Allowed && len(e.verdict.Policies) > 0 { // of an outer middleware
		v.Policies = append(e.verdict.Policies, v.Policies...)
	}
	e.verdict = v
	switch {
	case !v.Allowed:
	case e.open:
		h.next.ServeHTTP(w, r)
	default:
		if next := e.known(h.next); next != nil {
			next.ServeHTTP(w, r)
		}
	}
}

// served stands for the handlers of a service, which a replay does not run.
var served = http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})

// known returns a handler with the limits of h, and without its work; nil if h may work.
func (e *engine) known(h http.Handler) http.Handler {
	switch h := h.(type) {
	case *handler:
		return h
	case *http.ServeMux:
		return e.mux(h)
	case *chi.Mux:
		if e.walked[h] == nil {
			e.walked[h] = e.router(h)
		}
		return e.walked[h]
	}
	return nil
}

// serve makes h the handler of the engine.
func (e *engine) serve(h http.Handler) error {
	if e.handler = e.known(h); e.handler == nil {
		return fmt.Errorf("the handler is %T; want a router of chi, a ServeMux, or a Middleware's handler around one, without other middlewares around it", h)
	}
	if len(e.policies) == 0 {
		return fmt.Errorf("no Middleware has wrapped a handler: make Middlewares with the limiter that Run passes")
	}
	return nil
}

// mux returns a handler that finds patterns as the ServeMux does.
func (e *engine) mux(of *http.ServeMux) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		found, pattern := of.Handler(r)
		if pattern == "" {
			e.stray = true
			return
		}
		switch next := e.known(found).(type) {
		case nil:
		case *handler:
			of.ServeHTTP(w, r) // with the pattern and its values
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// router returns a router with the routes and the middlewares of a router of chi, and
// without its handlers. A HEAD counts as a GET.
func (e *engine) router(of *chi.Mux) http.Handler {
	r := chi.NewRouter()
	r.Use(chimiddleware.GetHead)
	r.Use(of.Middlewares()...)
	r.NotFound(e.unrouted(of.NotFoundHandler()))
	r.MethodNotAllowed(e.unrouted(of.MethodNotAllowedHandler()))
	_ = chi.Walk(of, func(method, route string, h http.Handler, all ...func(http.Handler) http.Handler) error {
		inline := r.With(all[len(of.Middlewares()):]...)
		h = e.endpoint(h)
		inline.Method(method, route, h)
		if mount := strings.TrimSuffix(route, "/"); mount != route && mount != "" && of.Match(chi.NewRouteContext(), method, mount) {
			inline.Method(method, mount, h) // chi serves a mounted router's "/" without the slash, too
		}
		return nil // so Walk has no error
	})
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		e.open = true
		r.ServeHTTP(w, req)
	})
}

// unrouted returns a handler that notes a request without a route.
func (e *engine) unrouted(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		e.stray, e.open = true, false
		next(w, r)
	}
}

// endpoint returns what serves a route: a Middleware's handler, or nothing.
func (e *engine) endpoint(h http.Handler) http.Handler {
	known := e.known(h)
	if known == nil {
		return served
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		e.open = false
		known.ServeHTTP(w, r)
	})
}

// unmet returns the policies that no request has met.
func (e *engine) unmet() (names []string) {
	for _, name := range slices.Sorted(maps.Keys(e.policies)) {
		if !slices.ContainsFunc(e.history.series, func(s *series) bool { return s.policy == name }) {
			names = append(names, name)
		}
	}
	return names
}
