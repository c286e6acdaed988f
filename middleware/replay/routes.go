// Routes: those of a router, or of a file of templates.

package replay

import (
	"bufio"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"

	"github.com/go-chi/chi/v5"
	chimiddleware "github.com/go-chi/chi/v5/middleware"

	"github.com/penstock-go/penstock/middleware"
)

// unmatched is the route of requests that no route serves.
const unmatched = "unmatched"

// newRouter returns a router with middlewares, and with handlers for requests without a
// route.
func newRouter(e *engine, notFound, notAllowed http.HandlerFunc, middlewares ...func(http.Handler) http.Handler) chi.Router {
	r := chi.NewRouter()
	r.Use(chimiddleware.GetHead)
	r.Use(middlewares...)
	stray := func(next http.HandlerFunc) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			e.strays++
			e.open = false
			next(w, r)
		}
	}
	r.NotFound(stray(notFound))
	r.MethodNotAllowed(stray(notAllowed))
	return r
}

// routes returns the routes of a file, or of a router of chi.
func (o *Options) routes(service http.Handler) ([]string, error) {
	if o.RoutesFile != "" {
		return readRoutes(o.RoutesFile)
	}
	router, ok := service.(chi.Routes)
	if !ok {
		return nil, fmt.Errorf("the routes of a %T are not known: name a file of routes", service)
	}
	return routesOf(router)
}

// routesOf returns the routes of a router as "METHOD template".
func routesOf(of chi.Routes) (routes []string, err error) {
	err = chi.Walk(of, func(method, route string, _ http.Handler, _ ...func(http.Handler) http.Handler) error {
		routes = append(routes, method+" "+route)
		return nil
	})
	slices.Sort(routes)
	return routes, err
}

// readRoutes reads a file of templates, one "METHOD /path/{id}" on each line. A line that
// begins with # is a comment. The error reports every mistake.
func readRoutes(name string) ([]string, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var routes []string
	var errs []error
	scanner := bufio.NewScanner(f)
	for n := 1; scanner.Scan(); n++ {
		line := strings.TrimSpace(scanner.Text())
		if line == "" || line[0] == '#' {
			continue
		}
		method, template, ok := strings.Cut(line, " ")
		route := method + " " + strings.TrimSpace(template)
		switch {
		case !ok || method != strings.ToUpper(method):
			errs = append(errs, fmt.Errorf("%s:%d: %q is not METHOD /path/{id}", name, n, line))
		case slices.Contains(routes, route):
			errs = append(errs, fmt.Errorf("%s:%d: the route %q is there twice", name, n, route))
		default:
			if err := register(chi.NewRouter(), route, served); err != nil {
				errs = append(errs, fmt.Errorf("%s:%d: %w", name, n, err))
			}
			routes = append(routes, route)
		}
	}
	return routes, errors.Join(append(errs, scanner.Err())...)
}

// register adds a route to a router. chi panics about a bad template.
func register(r chi.Router, route string, h http.Handler) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%v", p)
		}
	}()
	method, template, _ := strings.Cut(route, " ")
	r.Method(method, template, h)
	return nil
}

// mount returns a router in which each route has the policies that apply to it. A HEAD
// counts as a GET.
func (e *engine) mount(routes []string, all []filePolicy, policies []ratelimit.Policy, o *ratelimit.Options) (http.Handler, error) {
	made := make(map[string]http.Handler) // by the names of the policies
	var errs []error
	handler := func(route string) http.Handler {
		var names []string
		var those []ratelimit.Policy
		for i := range all {
			if all[i].appliesTo(route) {
				names, those = append(names, policies[i].Name), append(those, policies[i])
			}
		}
		if len(those) == 0 {
			return served
		}
		id := strings.Join(names, " ")
		if made[id] == nil {
			m, err := ratelimit.New(e.limiter, o, those...)
			if err != nil {
				errs = append(errs, fmt.Errorf("%s: %w", route, err))
				return served
			}
			made[id] = m.Handler(served)
		}
		return made[id]
	}
	none := handler(unmatched)
	unserved := func(w http.ResponseWriter, r *http.Request) {
		e.identity.route = unmatched
		none.ServeHTTP(w, r)
	}
	r := newRouter(e, unserved, unserved)
	for _, route := range routes {
		h := handler(route)
		errs = append(errs, register(r, route, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			e.identity.route = route
			h.ServeHTTP(w, r)
		})))
	}
	return r, errors.Join(errs...)
}
