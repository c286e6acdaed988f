package keyfunc

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/go-chi/chi/v5"
)

type ctxKey struct{}

// routeText writes a route the way keys do.
func routeText(template string) string {
	return "rt=" + string(appendEscaped(nil, template))
}

// A probe is a middleware that notes the key of each request it sees.
type probe struct {
	key  Key
	seen []string
}

func (p *probe) middleware(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s, err := p.key.Of(r)
		if err != nil {
			s = err.Error()
		}
		p.seen = append(p.seen, s)
		next.ServeHTTP(w, r)
	})
}

func (p *probe) handler() http.Handler { return p.middleware(http.HandlerFunc(ok)) }

func ok(http.ResponseWriter, *http.Request) {}

// serve sends a request through h and returns the keys that p saw, joined.
func (p *probe) serve(h http.Handler, method, target string) string {
	p.seen = nil
	h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(method, target, nil))
	return strings.Join(p.seen, " ")
}

func withValue(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), ctxKey{}, "x")))
	})
}

func newTestMux(h http.Handler) *http.ServeMux {
	inner := http.NewServeMux()
	inner.Handle("GET /items/{id}", h)
	mux := http.NewServeMux()
	for _, pattern := range []string{
		"GET /users/{id}", "POST /users/{id}", "/any/{id}", "GET example.com/hosted/{id}", "GET /files/{path...}",
		"GET /tree/", "/connect/{id}/", "GET /{$}",
	} {
		mux.Handle(pattern, h)
	}
	mux.Handle("/api/", http.StripPrefix("/api", inner))
	mux.Handle("GET /cloned/{id}", withValue(h))
	return mux
}

func TestRouteServeMux(t *testing.T) {
	for _, tt := range []struct {
		name, method, target string
		inside, around       string // "" inside: the handler is not reached
	}{
		{"wildcard", "GET", "/users/1", "GET /users/{id}", "GET /users/{id}"},
		{"another", "GET", "/users/2", "GET /users/{id}", "GET /users/{id}"},
		{"another method", "POST", "/users/1", "POST /users/{id}", "POST /users/{id}"},
		{"HEAD is GET", "HEAD", "/users/1", "GET /users/{id}", "GET /users/{id}"},
		{"escaped slash", "GET", "/users/a%2Fb", "GET /users/{id}", "GET /users/{id}"},
		{"any method, GET", "GET", "/any/1", "/any/{id}", "/any/{id}"},
		{"any method, PURGE", "PURGE", "/any/1", "/any/{id}", "/any/{id}"},
		{"host", "GET", "http://example.com/hosted/1", "GET example.com/hosted/{id}", "GET example.com/hosted/{id}"},
		{"another host", "GET", "http://example.org/hosted/1", "", "unmatched"},
		{"rest of the path", "GET", "/files/a/b/c", "GET /files/{path...}", "GET /files/{path...}"},
		{"root", "GET", "/", "GET /{$}", "GET /{$}"},
		{"slash redirect", "GET", "/tree", "", "GET /tree/"},
		{"clean redirect", "GET", "/users//1", "", "GET /users/{id}"},
		{"StripPrefix", "GET", "/api/items/1", "GET /items/{id}", "/api/"},
		{"WithContext inside", "GET", "/cloned/1", "GET /cloned/{id}", "GET /cloned/{id}"},
		{"404", "GET", "/none", "", "unmatched"},
		{"405", "DELETE", "/users/1", "", "unmatched"},
		{"PURGE", "PURGE", "/users/1", "", "unmatched"},
		{"CONNECT", "CONNECT", "/connect/1/", "/connect/{id}/", "/connect/{id}/"},
		{"CONNECT redirect", "CONNECT", "/connect/1", "", "unmatched"},
		{"CONNECT, another redirect", "CONNECT", "/connect/2", "", "unmatched"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inside := &probe{key: Route()}
			mux := newTestMux(inside.handler())
			want := tt.inside
			if want != "" {
				want = routeText(want)
			}
			if got := inside.serve(mux, tt.method, tt.target); got != want {
				t.Errorf("got %q inside, want %q", got, want)
			}
			around := &probe{key: RouteIn(mux)}
			if got := around.serve(around.middleware(mux), tt.method, tt.target); got != routeText(tt.around) {
				t.Errorf("got %q from RouteIn, want %q", got, routeText(tt.around))
			}
			outside := &probe{key: Route()}
			if got := outside.serve(outside.middleware(mux), tt.method, tt.target); got != "rt=unmatched" {
				t.Errorf("got %q outside of the mux, want %q", got, "rt=unmatched")
			}
		})
	}
}

// Behind a mux that has received a copy of the request, the pattern is
// lost; then there must still be a bucket.
func TestRoutePatternLost(t *testing.T) {
	p := &probe{key: Route()}
	after := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		newTestMux(http.HandlerFunc(ok)).ServeHTTP(w, r.WithContext(t.Context()))
		p.handler().ServeHTTP(w, r)
	})
	if got := p.serve(after, "GET", "/users/1"); got != "rt=unmatched" {
		t.Errorf("got %q, want %q", got, "rt=unmatched")
	}
}

func TestRouteServeMuxInChi(t *testing.T) {
	p := &probe{key: Route()}
	patterns := func(prefix string) *http.ServeMux {
		mux := http.NewServeMux()
		mux.Handle("GET "+prefix+"/items/{id}", p.handler())
		mux.Handle(prefix+"/any/{id}", p.handler())
		return mux
	}
	r := chi.NewRouter()
	r.Mount("/ext", patterns("/ext"))
	r.Mount("/strip", http.StripPrefix("/strip", patterns("")))
	r.Route("/v1", func(r chi.Router) { r.Mount("/int", patterns("/v1/int")) })
	r.Handle("/one/{id}", http.StripPrefix("/one", patterns("")))
	r.Mount("/plain", p.handler())

	for _, tt := range []struct{ method, target, want string }{
		{"GET", "/ext/items/1", "/ext/* GET /ext/items/{id}"},
		{"HEAD", "/ext/items/1", "/ext/* GET /ext/items/{id}"},
		{"GET", "/ext/any/1", "/ext/* /ext/any/{id}"},
		{"POST", "/ext/any/1", "/ext/* /ext/any/{id}"},
		{"GET", "/strip/items/1", "/strip/* GET /items/{id}"},
		{"GET", "/v1/int/items/1", "/v1/int/* GET /v1/int/items/{id}"},
		{"GET", "/plain/x", "GET /plain/*"},
		{"GET", "/plain", "GET /plain"},
	} {
		if got := p.serve(r, tt.method, tt.target); got != routeText(tt.want) {
			t.Errorf("got %q of %s %s, want %q", got, tt.method, tt.target, routeText(tt.want))
		}
	}
}

// A chi router within a ServeMux is asked, not the mux around it.
func TestRouteChiInServeMux(t *testing.T) {
	p := &probe{key: Route()}
	r := chi.NewRouter()
	r.Use(p.middleware)
	r.With(p.middleware).Get("/items/{id}", ok)
	mux := http.NewServeMux()
	mux.Handle("/api/", http.StripPrefix("/api", r))
	want := routeText("GET /items/{id}")
	if got := p.serve(mux, "GET", "/api/items/1"); got != want+" "+want {
		t.Errorf("got %q, want %q twice", got, want)
	}
	if got := p.serve(mux, "GET", "/api/none"); got != "rt=unmatched" {
		t.Errorf("got %q, want %q", got, "rt=unmatched")
	}
}
