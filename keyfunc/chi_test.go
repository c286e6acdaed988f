package keyfunc

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"
)

func init() { chi.RegisterMethod("LINK") }

// newChiRouter has a probe everywhere a middleware can be: at the root, around
// each mount, at the sub-routers and at each route.
func newChiRouter(p *probe, first ...func(http.Handler) http.Handler) chi.Router {
	r := chi.NewRouter()
	r.Use(first...)
	r.Use(p.middleware)
	with := r.With(p.middleware)
	with.Get("/", ok)
	with.Get("/users/{id}", ok)
	with.Get("/codes/{code:[A-Z]{3}}/{rest:.+}", ok)
	with.Head("/heads/{id}", ok)
	with.Get("/both", ok)
	with.Get("/both/", ok)
	with.Get("/files/*", ok)
	with.Get("/mixed/{a}-{b}.txt", ok)
	with.Method("LINK", "/users/{id}", http.HandlerFunc(ok))
	with.Query("/users/{id}", ok)
	with.Handle("/all", http.HandlerFunc(ok))
	with.Mount("/ext", http.HandlerFunc(ok))
	with.Route("/langs/{lang:[a-z]{2}}", func(r chi.Router) {
		r.Use(p.middleware)
		r.With(p.middleware).Get("/words/{word:[a-z]{1,9}}", ok)
	})
	with.Route("/v1", func(r chi.Router) {
		r.Use(p.middleware)
		r.With(p.middleware).Get("/", ok)
		r.With(p.middleware).Get("/orders/{id}", ok)
		r.Group(func(r chi.Router) {
			r.Use(p.middleware)
			r.Get("/files/*", ok)
			r.Route("/deep/{org}", func(r chi.Router) {
				r.Use(p.middleware)
				r.With(p.middleware).Get("/", ok)
				r.With(p.middleware).Get("/repos/{repo}", ok)
				r.With(p.middleware).Mount("/ext", http.HandlerFunc(ok))
			})
		})
	})
	return r
}

// same reports whether every probe saw want, and that one did.
func same(seen []string, want string) bool {
	return len(seen) > 0 && !slices.ContainsFunc(seen, func(s string) bool { return s != want })
}

func TestRouteChi(t *testing.T) {
	for _, tt := range []struct{ name, method, target, want string }{
		{"root", "GET", "/", "GET /"},
		{"param", "GET", "/users/1", "GET /users/{id}"},
		{"another", "GET", "/users/2", "GET /users/{id}"},
		{"escaped slash", "GET", "/users/a%2Fb", "GET /users/{id}"},
		{"escaped braces", "GET", "/users/%7Bid%7D*", "GET /users/{id}"},
		{"regexp", "GET", "/codes/ABC/x", "GET /codes/{code:[A-Z]{3}}/{rest:.+}"},
		{"two params in a segment", "GET", "/mixed/x-y.txt", "GET /mixed/{a}-{b}.txt"},
		{"HEAD of its own", "HEAD", "/heads/1", "GET /heads/{id}"},
		{"with slash", "GET", "/both/", "GET /both"},
		{"without slash", "GET", "/both", "GET /both"},
		{"wildcard", "GET", "/files/a/b", "GET /files/*"},
		{"wildcard, empty", "GET", "/files/", "GET /files/*"},
		{"all methods", "PATCH", "/all", "PATCH /all"},
		{"registered method", "LINK", "/users/1", "OTHER /users/{id}"},
		{"QUERY", "QUERY", "/users/1", "OTHER /users/{id}"},
		{"mounted handler", "GET", "/ext/a/b", "GET /ext/*"},
		{"mounted handler, bare", "GET", "/ext", "GET /ext"},
		{"mounted handler, slash", "GET", "/ext/", "GET /ext"},
		{"mounted handler, all methods", "DELETE", "/ext/a", "DELETE /ext/*"},
		{"sub-router, bare", "GET", "/v1", "GET /v1"},
		{"sub-router, slash", "GET", "/v1/", "GET /v1"},
		{"sub-router", "GET", "/v1/orders/1", "GET /v1/orders/{id}"},
		{"sub-router, escaped", "GET", "/v1/orders/a%2Fb", "GET /v1/orders/{id}"},
		{"sub-router, wildcard", "GET", "/v1/files/a/b", "GET /v1/files/*"},
		{"sub-router, wildcard, empty", "GET", "/v1/files/", "GET /v1/files/*"},
		{"deep", "GET", "/v1/deep/acme/repos/x", "GET /v1/deep/{org}/repos/{repo}"},
		{"deep, wildcard value", "GET", "/v1/deep/*/repos/x", "GET /v1/deep/{org}/repos/{repo}"},
		{"deep, bare", "GET", "/v1/deep/acme", "GET /v1/deep/{org}"},
		{"deep, slash", "GET", "/v1/deep/acme/", "GET /v1/deep/{org}"},
		{"deep, mounted handler", "GET", "/v1/deep/acme/ext/x", "GET /v1/deep/{org}/ext/*"},
		{"regexp, sub-router", "GET", "/langs/de/words/rinne", "GET /langs/{lang:[a-z]{2}}/words/{word:[a-z]{1,9}}"},
		{"404", "GET", "/none/1", "unmatched"},
		{"404 of a sub-router", "GET", "/v1/none/1", "unmatched"},
		{"404 deep", "GET", "/v1/deep/acme/none", "unmatched"},
		{"404 trailing slash", "GET", "/users/1/", "unmatched"},
		{"404 double slash", "GET", "//users/1", "unmatched"},
		{"405", "POST", "/users/1", "unmatched"},
		{"405 of a sub-router", "POST", "/v1/orders/1", "unmatched"},
		{"PURGE", "PURGE", "/users/1", "unmatched"},
		{"PURGE to all methods", "PURGE", "/all", "unmatched"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := &probe{key: Route()}
			p.serve(newChiRouter(p), tt.method, tt.target)
			if want := routeText(tt.want); !same(p.seen, want) {
				t.Errorf("got %q, want %q everywhere", p.seen, want)
			}
		})
	}
}

func asMethod(method string) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			chi.RouteContext(r.Context()).RouteMethod = method
			next.ServeHTTP(w, r)
		})
	}
}

func addParam(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		chi.RouteContext(r.Context()).URLParams.Add("x", "y")
		next.ServeHTTP(w, r)
	})
}

// Middleware that rewrites the path or the method must not open new buckets,
// also not in sub-routers.
func TestRouteChiRewritten(t *testing.T) {
	type middlewares = []func(http.Handler) http.Handler
	strip, clean := middlewares{middleware.StripSlashes}, middlewares{middleware.CleanPath}
	head := middlewares{middleware.GetHead}
	for _, tt := range []struct {
		name           string
		first          middlewares
		method, target string
		want           string
	}{
		{"StripSlashes", strip, "GET", "/users/1/", "GET /users/{id}"},
		{"StripSlashes, sub-router", strip, "GET", "/v1/orders/1/", "GET /v1/orders/{id}"},
		{"StripSlashes, mount", strip, "GET", "/v1/", "GET /v1"},
		{"CleanPath", clean, "GET", "//users//1", "GET /users/{id}"},
		{"CleanPath, sub-router", clean, "GET", "/v1//orders/1", "GET /v1/orders/{id}"},
		{"CleanPath, deep", clean, "GET", "/v1/x/..//deep/acme//repos/./x", "GET /v1/deep/{org}/repos/{repo}"},
		{"CleanPath, wildcard", clean, "GET", "/v1//files//x", "GET /v1/files/*"},
		{"CleanPath, 404", clean, "GET", "/v1//none", "unmatched"},
		{"GetHead", head, "HEAD", "/users/1", "GET /users/{id}"},
		{"GetHead, sub-router", head, "HEAD", "/v1/orders/1", "GET /v1/orders/{id}"},
		{"GetHead, HEAD route", head, "HEAD", "/heads/1", "GET /heads/{id}"},
		{"GetHead, 404", head, "HEAD", "/none", "unmatched"},
		{"method override", middlewares{asMethod("GET")}, "POST", "/v1/orders/1", "GET /v1/orders/{id}"},
		{"added params", middlewares{addParam}, "GET", "/v1/deep/acme/repos/x", "GET /v1/deep/{org}/repos/{repo}"},
		{"WithContext", middlewares{withValue}, "GET", "/v1/deep/acme/repos/x", "GET /v1/deep/{org}/repos/{repo}"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := &probe{key: Route()}
			p.serve(newChiRouter(p, tt.first...), tt.method, tt.target)
			if want := routeText(tt.want); !same(p.seen, want) {
				t.Errorf("got %q, want %q everywhere", p.seen, want)
			}
		})
	}
}

// In front of GetHead a HEAD has no route yet, but it will be served as GET.
func TestRouteChiBeforeGetHead(t *testing.T) {
	p := &probe{key: Route()}
	r := chi.NewRouter()
	r.Use(p.middleware, middleware.GetHead)
	r.With(p.middleware).Get("/users/{id}", ok)
	p.serve(r, "HEAD", "/users/1")
	if want := routeText("GET /users/{id}"); len(p.seen) != 2 || !same(p.seen, want) {
		t.Errorf("got %q, want %q twice", p.seen, want)
	}
}

// The path of the URL may change between routers; chi does not mind.
func TestRouteChiStripPrefixWithin(t *testing.T) {
	p := &probe{key: Route()}
	sub := chi.NewRouter()
	sub.Use(p.middleware)
	sub.With(p.middleware).Get("/users/{id}", ok)
	r := chi.NewRouter()
	r.Use(p.middleware)
	r.Get("/users/{name}", ok) // matches the stripped path
	r.Mount("/api", http.StripPrefix("/api", sub))
	p.serve(r, "GET", "/api/users/1")
	// The root cannot look into the handler that strips, nor can the sub-router
	// ask the root; with the route itself all is known.
	want := []string{routeText("GET /api/*"), routeText("GET /api/*"), routeText("GET /api/users/{id}")}
	if !slices.Equal(p.seen, want) {
		t.Errorf("got %q, want %q", p.seen, want)
	}
}

// A URL without a path is routed as "/".
func TestRouteChiEmptyPath(t *testing.T) {
	p := &probe{key: Route()}
	r := httptest.NewRequest("GET", "/", nil)
	r.URL.Path = ""
	newChiRouter(p).ServeHTTP(httptest.NewRecorder(), r)
	if want := routeText("GET /"); len(p.seen) != 2 || !same(p.seen, want) {
		t.Errorf("got %q, want %q twice", p.seen, want)
	}
}

// A routing context that others have changed must neither panic nor make keys
// of the path.
func TestRouteChiTampered(t *testing.T) {
	for _, tt := range []struct {
		name   string
		tamper func(*chi.Context)
		want   string
	}{
		{"nothing routes", func(c *chi.Context) { c.Routes = nil }, "GET /v1/*"},
		{"no params", func(c *chi.Context) { c.URLParams = chi.RouteParams{} }, "GET /v1/*"},
		{"fewer values", func(c *chi.Context) { c.URLParams.Values = nil }, "GET /v1/*"},
		{"other params", func(c *chi.Context) { c.URLParams.Keys[0] = "x" }, "GET /v1/*"},
		{"other pattern", func(c *chi.Context) { c.RoutePatterns = []string{"/other/*"} }, "unmatched"},
		{"patterns of stars", func(c *chi.Context) { c.RoutePatterns = []string{"*", "/*"} }, "GET */*"},
		{"open brace", func(c *chi.Context) { c.RoutePatterns = []string{"/{", "/*"} }, "unmatched"},
		{"no name", func(c *chi.Context) { c.RoutePatterns = []string{"/{}", "/*"} }, "unmatched"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := chi.NewRouter()
			var got string
			r.Route("/v1", func(r chi.Router) {
				r.Use(func(next http.Handler) http.Handler {
					return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
						tt.tamper(chi.RouteContext(r.Context()))
						got, _ = Route().Of(r)
					})
				})
				r.Get("/orders/{id}", ok)
			})
			r.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/v1/orders/4711", nil))
			if want := routeText(tt.want); got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}

// A lookup that is used again must not keep the findings of its last use.
func TestRouteChiLookupIsReset(t *testing.T) {
	s := lookups.Get().(*lookup)
	newChiRouter(&probe{}).Find(s.rctx, "GET", "/users/1")
	if len(s.rctx.URLParams.Keys) != 1 {
		t.Fatalf("got %d params while in use, want 1", len(s.rctx.URLParams.Keys))
	}
	s.release()
	if len(s.rctx.URLParams.Keys) != 0 || len(s.rctx.RoutePatterns) != 0 {
		t.Errorf("got %+v after release, want it empty", s.rctx)
	}
}
