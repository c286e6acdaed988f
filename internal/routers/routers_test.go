package routers

import (
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/gorilla/mux"
	"github.com/julienschmidt/httprouter"
	echo4 "github.com/labstack/echo/v4"
	echo5 "github.com/labstack/echo/v5"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/keyfunc"
	"github.com/penstock-go/penstock/middleware"
)

// A site is a router with the routes GET /a/{id} (200), POST /login (401, as an
// error where the router has errors) and POST /ok (200).
type site struct {
	name string
	// route makes the router. If tells is set, it uses the documented line that sets
	// the route. If shows is set, it uses the documented line that writes the status.
	route func(limit func(http.Handler) http.Handler, tells, shows bool) http.Handler
}

var sites = []site{
	{"gorilla", gorilla}, {"gin", ofGin}, {"echo v4", ofEcho4}, {"echo v5", ofEcho5}, {"httprouter", ofHTTPRouter},
}

func answer(code int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
}

func gorilla(limit func(http.Handler) http.Handler, tells, _ bool) http.Handler {
	router := mux.NewRouter()
	router.Use(func(next http.Handler) http.Handler {
		limited := limit(next)
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if tells {
				r.Pattern, _ = mux.CurrentRoute(r).GetPathTemplate()
			}
			limited.ServeHTTP(w, r)
		})
	})
	router.Handle("/a/{id}", answer(200)).Methods("GET")
	router.Handle("/login", answer(401)).Methods("POST")
	router.Handle("/ok", answer(200)).Methods("POST")
	return router
}

func ofGin(limit func(http.Handler) http.Handler, tells, shows bool) http.Handler {
	gin.SetMode(gin.ReleaseMode)
	router := gin.New()
	router.Use(func(c *gin.Context) {
		if tells {
			c.Request.Pattern = c.FullPath()
		}
		passed := false
		limit(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			passed, c.Request = true, r
			c.Next()
			if shows {
				w.WriteHeader(c.Writer.Status())
			}
		})).ServeHTTP(c.Writer, c.Request)
		if !passed {
			c.Abort()
		}
	})
	router.GET("/a/:id", func(c *gin.Context) { c.String(200, "a") })
	router.POST("/login", func(c *gin.Context) { c.AbortWithStatus(401) })
	router.POST("/ok", func(c *gin.Context) { c.Status(200) })
	return router
}

func ofEcho4(limit func(http.Handler) http.Handler, tells, shows bool) http.Handler {
	router := echo4.New()
	if tells {
		router.Use(func(next echo4.HandlerFunc) echo4.HandlerFunc {
			return func(c echo4.Context) error {
				c.Request().Pattern = c.Path()
				return next(c)
			}
		})
	}
	router.Use(echo4.WrapMiddleware(limit))
	if shows {
		router.Use(func(next echo4.HandlerFunc) echo4.HandlerFunc {
			return func(c echo4.Context) error {
				if err := next(c); err != nil {
					c.Error(err)
				}
				return nil
			}
		})
	}
	router.GET("/a/:id", func(c echo4.Context) error { return c.String(200, "a") })
	router.POST("/login", func(echo4.Context) error { return echo4.ErrUnauthorized })
	router.POST("/ok", func(c echo4.Context) error { return c.NoContent(200) })
	return router
}

func ofEcho5(limit func(http.Handler) http.Handler, _, shows bool) http.Handler {
	router := echo5.New()
	router.Use(echo5.WrapMiddleware(limit)) // it sets the route
	if shows {
		router.Use(func(next echo5.HandlerFunc) echo5.HandlerFunc {
			return func(c *echo5.Context) error {
				if err := next(c); err != nil {
					c.Echo().HTTPErrorHandler(c, err)
				}
				return nil
			}
		})
	}
	router.GET("/a/:id", func(c *echo5.Context) error { return c.String(200, "a") })
	router.POST("/login", func(*echo5.Context) error { return echo5.ErrUnauthorized })
	router.POST("/ok", func(c *echo5.Context) error { return c.NoContent(200) })
	return router
}

func ofHTTPRouter(limit func(http.Handler) http.Handler, tells, _ bool) http.Handler {
	router := httprouter.New()
	handle := func(method, path string, h http.Handler) {
		limited := limit(h)
		router.HandlerFunc(method, path, func(w http.ResponseWriter, r *http.Request) {
			if tells {
				r.Pattern = path
			}
			limited.ServeHTTP(w, r)
		})
	}
	handle("GET", "/a/:id", answer(200))
	handle("POST", "/login", answer(401))
	handle("POST", "/ok", answer(200))
	return router
}

// send sends a request for each path, and returns the statuses.
func send(t *testing.T, h http.Handler, method string, paths ...string) (statuses []int) {
	t.Helper()
	server := httptest.NewServer(h)
	defer server.Close()
	for _, path := range paths {
		r, err := http.NewRequestWithContext(t.Context(), method, server.URL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		response, err := server.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, response.Body)
		response.Body.Close()
		statuses = append(statuses, response.StatusCode)
	}
	return statuses
}

func findingCodes(m *ratelimit.Middleware) (codes []string) {
	for _, f := range m.Findings() {
		codes = append(codes, f.Code)
	}
	return codes
}

// With the documented line, keyfunc.Route finds the route. Without it, a router
// behind a pattern of a ServeMux causes a finding.
func TestRoutes(t *testing.T) {
	for _, s := range sites {
		for _, tells := range []bool{false, true} {
			m := ratelimit.Must(ratelimit.New(algorithms.NewMemory(nil), nil, ratelimit.Policy{
				Name: "p", Key: keyfunc.Route(), Limit: algorithms.FixedWindow(1_000, 24*time.Hour),
			}))
			var keys []string
			see := func(next http.Handler) http.Handler {
				return m.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					key, _, _ := keyfunc.Route().Append(nil, &keyfunc.Request{Request: r})
					keys = append(keys, string(key))
					next.ServeHTTP(w, r)
				}))
			}
			outer := http.NewServeMux()
			outer.Handle("/", s.route(see, tells, true))
			paths := make([]string, 101)
			for i := range paths {
				paths[i] = "/a/" + string(rune('a'+i%26))
			}
			if got := send(t, outer, "GET", paths...); slices.Contains(got, 404) {
				t.Fatalf("%s: got %v", s.name, got)
			}
			told := tells || s.name == "echo v5"
			want, found := "rt=/", []string{"PS111"}
			if told {
				want, found = "rt=/a/:id", nil
			}
			if told && s.name == "gorilla" {
				want = "rt=/a/%7Bid%7D"
			}
			slices.Sort(keys)
			if got := slices.Compact(keys); !slices.Equal(got, []string{want}) {
				t.Errorf("%s, with the documented line: %v: got the keys %q, want %q", s.name, tells, got, want)
			}
			if got := findingCodes(m); !slices.Equal(got, found) {
				t.Errorf("%s, with the documented line: %v: got the findings %v, want %v", s.name, tells, got, found)
			}
		}
	}
}

// Paths that no route matches share a key. If each had its own key, a scanner would
// fill the store.
func TestUnmatchedPaths(t *testing.T) {
	for _, s := range sites {
		var keys []string
		see := func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				key, _, _ := keyfunc.Route().Append(nil, &keyfunc.Request{Request: r})
				keys = append(keys, string(key))
				next.ServeHTTP(w, r)
			})
		}
		router := s.route(see, true, true)
		if got := send(t, router, "GET", "/x/1", "/x/2", "/x/1/b"); !slices.Equal(got, []int{404, 404, 404}) {
			t.Errorf("%s: got %v, want 404", s.name, got)
		}
		if got := send(t, router, "DELETE", "/a/1", "/a/2"); got[0]/100 != 4 {
			t.Errorf("%s: got %v, want 404 or 405", s.name, got)
		}
		for _, key := range keys { // gorilla and httprouter call no middleware here, so they have no key
			if key != "rt=unmatched" && key != "rt=/a/:id" {
				t.Errorf("%s: got the key %q, want rt=unmatched", s.name, key)
			}
		}
		t.Logf("%s: %q", s.name, keys)
	}
}

// With the documented line, ChargeIf receives the status from gin and echo. Without
// it, the first affected request causes a finding.
func TestStatuses(t *testing.T) {
	for _, s := range sites {
		for _, shows := range []bool{false, true} {
			m := ratelimit.Must(ratelimit.New(algorithms.NewMemory(nil), nil, ratelimit.Policy{
				Name: "p", Limit: algorithms.FixedWindow(2, 24*time.Hour), ChargeIf: func(status int) bool { return status == 401 },
			}))
			router := s.route(m.Handler, true, shows)
			sees := shows || s.name == "gorilla" || s.name == "httprouter"
			want, found := []int{401, 401, 401}, []string{"PS110"}
			if sees {
				want, found = []int{401, 401, 429}, nil
			}
			if got := send(t, router, "POST", "/ok", "/ok", "/ok"); !slices.Equal(got, []int{200, 200, 200}) {
				t.Errorf("%s, with the documented line: %v: got %v for successes, want all of them", s.name, shows, got)
			}
			if got := send(t, router, "POST", "/login", "/login", "/login"); !slices.Equal(got, want) {
				t.Errorf("%s, with the documented line: %v: got %v for failures, want %v", s.name, shows, got, want)
			}
			if got := findingCodes(m); !slices.Equal(got, found) {
				t.Errorf("%s, with the documented line: %v: got the findings %v, want %v", s.name, shows, got, found)
			}
		}
	}
}
