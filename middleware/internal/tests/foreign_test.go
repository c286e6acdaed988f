package tests

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	chimiddleware "github.com/go-chi/chi/v5/middleware"

	"github.com/penstock-go/penstock/keyfunc"
	"github.com/penstock-go/penstock/middleware"
)

// The tests here are of routers and middlewares of others. Module internal/routers tests the real gin, echo, gorilla
// and httprouter.

// byClientAndRoute counts each client on each route.
func byClientAndRoute() ratelimit.Policy {
	return ratelimit.Policy{Name: "p", Key: keyfunc.Join(keyfunc.IP(nil), keyfunc.Route()), Limit: plenty}
}

// TestHiddenRoutes: a hundred requests below a mount point, and none of another route, are PS111.
func TestHiddenRoutes(t *testing.T) {
	for _, tt := range []struct {
		pattern, path, want string
	}{
		{"/", "/a", "PS111 p"},
		{"/api/", "/api/a", "PS111 p"},
		{"GET /api/", "/api/a", "PS111 p"},
		{"/api/{rest...}", "/api/a", "PS111 p"},
		{"/", "/", ""},         // an API with one address
		{"/api/", "/api/", ""}, // the same
		{"/{$}", "/", ""},
		{"/a/{id}", "/a/1", ""},
		{"/a", "/a", ""},
	} {
		m := newMiddleware(t, newMemory(t), &ratelimit.Options{Logger: quiet}, byClientAndRoute())
		mux := http.NewServeMux()
		mux.Handle(tt.pattern, m.Handler(ok))
		for range 99 {
			record(mux, request(t, "GET", tt.path))
		}
		wantFindings(t, m, tt.pattern+" after 99 requests", "")
		record(mux, request(t, "GET", tt.path))
		wantFindings(t, m, tt.pattern+" after a hundred requests of "+tt.path, tt.want)
	}
}

// TestHiddenRoutesEnd: PS111 ends as soon as a whole route is known, and does not return.
func TestHiddenRoutesEnd(t *testing.T) {
	m := newMiddleware(t, newMemory(t), &ratelimit.Options{Logger: quiet}, byClientAndRoute())
	mux := http.NewServeMux()
	mux.Handle("/", m.Handler(ok))
	mux.Handle("/known", m.Handler(ok))
	for range 100 {
		record(mux, request(t, "GET", "/a"))
	}
	wantFindings(t, m, "after a hundred requests below /", "PS111 p")
	record(mux, request(t, "GET", "/known"))
	wantFindings(t, m, "after one of another route", "")
	for range 200 {
		record(mux, request(t, "GET", "/a"))
	}
	wantFindings(t, m, "after 200 requests more below /", "")
}

// Writers of routers that may answer past the middleware.
type (
	ginWriter  struct{ http.ResponseWriter }
	echoWriter struct{ http.ResponseWriter }
)

func (ginWriter) WriteHeaderNow() {}
func (echoWriter) Before(func())  {}
func (echoWriter) After(func())   {}

// TestBypassedStatus: one silent outcome in gin or echo is PS110, and a written one does not end it: echo writes
// successes and keeps errors to itself.
func TestBypassedStatus(t *testing.T) {
	written := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) })
	for name, in := range map[string]func(http.ResponseWriter) http.ResponseWriter{
		"gin":  func(w http.ResponseWriter) http.ResponseWriter { return ginWriter{w} },
		"echo": func(w http.ResponseWriter) http.ResponseWriter { return echoWriter{w} },
	} {
		m := newMiddleware(t, newMemory(t), &ratelimit.Options{Logger: quiet}, byOutcome())
		serve := func(h http.Handler) { m.Handler(h).ServeHTTP(in(httptest.NewRecorder()), from("192.0.2.1")) }
		serve(written)
		wantFindings(t, m, name+" after a written status", "")
		serve(ok)
		wantFindings(t, m, name+" after a silent outcome", "PS110 p")
		serve(written)
		wantFindings(t, m, name+" after a written status more", "PS110 p")
	}
}

// TestTimeoutOutcomes: a handler that wrote nothing before its deadline counts as 504, whoever answers.
func TestTimeoutOutcomes(t *testing.T) {
	deadline := func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			ctx, cancel := context.WithTimeout(r.Context(), time.Second)
			defer cancel()
			next.ServeHTTP(w, r.WithContext(ctx))
		})
	}
	waits := func(w http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
	late := func(w http.ResponseWriter, r *http.Request) { <-r.Context().Done(); w.WriteHeader(201) }
	for _, tt := range []struct {
		name      string
		outside   func(http.Handler) http.Handler
		handler   http.HandlerFunc
		seen, got int
		left      int64
	}{
		{"a deadline", deadline, waits, 504, 200, 9},
		{"chi", chimiddleware.Timeout(time.Second), waits, 504, 504, 9},
		{"net/http", func(h http.Handler) http.Handler { return http.TimeoutHandler(h, time.Second, "") }, waits, 504, 503, 9},
		{"a late answer", deadline, late, 201, 201, 10},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				memory, p := newStill(t), newOutcomes(hourly)
				w := record(tt.outside(newMiddleware(t, memory, nil, p.Policy).Handler(tt.handler)), from("192.0.2.1"))
				synctest.Wait()
				if got := left(t, memory, p.Policy, "ip=192.0.2.1"); w.Code != tt.got || got != tt.left || fmt.Sprint(p.asked) != fmt.Sprint([]int{tt.seen}) {
					t.Errorf("got %d, %d left and statuses %v, want %d, %d and [%d]", w.Code, got, p.asked, tt.got, tt.left, tt.seen)
				}
			})
		})
	}
}

// TestInnerRefusalCounts: what an inner Middleware answers is an outcome of the outer one.
func TestInnerRefusalCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory, p := newStill(t), newOutcomes(hourly)
		inner := newMiddleware(t, memory, nil, byIP("inner", hourly.WithBurst(1)))
		h := newMiddleware(t, memory, nil, p.Policy).Handler(inner.Handler(ok))
		record(h, from("192.0.2.1"))
		record(h, from("192.0.2.1"))
		synctest.Wait()
		if got := left(t, memory, p.Policy, "ip=192.0.2.1"); got != 9 || fmt.Sprint(p.asked) != "[200 429]" {
			t.Errorf("got %d left and statuses %v, want 9 and [200 429]", got, p.asked)
		}
	})
}
