// The first examples: mount a middleware, read its verdict, close it.

package ratelimit_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/keyfunc"
	"github.com/penstock-go/penstock/middleware"
)

// A hundred requests per minute from each client address, counted in this process.
func Example_smallest() {
	perIP := ratelimit.Must(ratelimit.New(algorithms.NewMemory(nil), nil, ratelimit.Policy{
		Name: "api", Limit: algorithms.SlidingWindowCounter(100, time.Minute),
	}))
	r := chi.NewRouter()
	r.Use(perIP.Handler)
	_ = r
}

// Each client address may call a handler twice at once, and twice per minute in the long run.
func Example() {
	limiter := algorithms.NewMemory(nil)

	limited := ratelimit.Must(ratelimit.New(limiter, nil, ratelimit.Policy{
		Name:  "reports",
		Key:   keyfunc.IP(nil),
		Limit: algorithms.TokenBucket(2, time.Minute),
	}))

	mux := http.NewServeMux()
	mux.Handle("GET /reports/{id}", limited.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintln(w, "report", r.PathValue("id"))
	})))

	for range 3 {
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, httptest.NewRequest("GET", "/reports/7", nil))
		fmt.Printf("%d %s %q\n", w.Code, w.Header().Get("RateLimit"), w.Header().Get("Retry-After"))
	}
	// Output:
	// 200 "reports";r=1;t=30 ""
	// 200 "reports";r=0;t=30 ""
	// 429 "reports";r=0;t=30 "30"
}

// In chi a middleware may be mounted anywhere; keyfunc.Route is the template, not the path. Several policies are one
// decision: a request that the merchant's policy denies is charged to no policy.
func Example_chi() {
	limiter := algorithms.NewMemory(nil)
	lookup := func(_ context.Context, key string) (keyfunc.Identity, error) {
		if key != "sk_live_1" {
			return keyfunc.Identity{}, keyfunc.ErrUnknown
		}
		return keyfunc.Identity{ID: "merchant-1"}, nil
	}

	charges := ratelimit.Must(ratelimit.New(limiter, nil,
		ratelimit.Policy{
			Name:  "merchant",
			Key:   keyfunc.Join(keyfunc.APIKey("X-API-Key", lookup), keyfunc.Route()),
			Limit: algorithms.TokenBucket(60, time.Minute).WithBurst(1),
		},
		ratelimit.Policy{ // the capacity that all merchants share
			Name: "capacity", Key: keyfunc.Const("charges"), Capacity: true,
			Limit: algorithms.TokenBucket(10_000, time.Second),
		}))

	r := chi.NewRouter()
	r.With(charges.Handler).Post("/v1/charges/{id}", func(http.ResponseWriter, *http.Request) {})

	for _, call := range []struct{ path, key string }{
		{"/v1/charges/1", "sk_live_1"}, {"/v1/charges/2", "sk_live_1"}, {"/v1/charges/3", "sk_guess"}, {"/v1/charges/4", ""},
	} {
		w, req := httptest.NewRecorder(), httptest.NewRequest("POST", call.path, nil)
		if call.key != "" {
			req.Header.Set("X-API-Key", call.key)
		}
		r.ServeHTTP(w, req)
		fmt.Printf("%d %q\n", w.Code, w.Header().Get("RateLimit"))
	}
	// Output:
	// 200 "\"merchant\";r=0;t=1"
	// 429 "\"merchant\";r=0;t=1"
	// 401 ""
	// 401 ""
}

// Check limits messages that are not HTTP requests. It charges, and leaves the answer to its caller.
func ExampleMiddleware_Check() {
	limiter := algorithms.NewMemory(nil)
	messages := ratelimit.Must(ratelimit.New(limiter, nil, ratelimit.Policy{
		Name: "messages", Key: keyfunc.IP(nil), Limit: algorithms.SlidingWindowLog(2, time.Hour),
	}))

	upgrade := httptest.NewRequest("GET", "/chat", nil) // of the WebSocket
	for _, text := range []string{"hello", "again", "and again"} {
		switch v, err := messages.Check(upgrade); {
		case err != nil:
			fmt.Println("refused:", v.Status)
		case !v.Allowed:
			fmt.Printf("slow down: %q has to wait for %v\n", text, v.RetryAfter.Round(time.Hour))
		default:
			time.Sleep(v.Delay) // of a leaky bucket
			fmt.Println(text)
		}
	}
	// Output:
	// hello
	// again
	// slow down: "and again" has to wait for 1h0m0s
}

// A handler may answer more cheaply when its client has little left.
func ExampleFromContext() {
	limiter := algorithms.NewMemory(nil)
	search := ratelimit.Must(ratelimit.New(limiter, nil, ratelimit.Policy{
		Name: "search", Key: keyfunc.IP(nil), Limit: algorithms.TokenBucket(3, time.Hour),
	}))
	h := search.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		v, _ := ratelimit.FromContext(r.Context())
		p, ok := v.Policy("search")
		if ok && p.Decision.Source != algorithms.Undecided && p.Decision.Remaining < 2 {
			fmt.Fprint(w, "from the cache")
			return
		}
		fmt.Fprint(w, "from the index")
	}))
	for range 3 {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest("GET", "/?q=go", nil))
		fmt.Println(w.Body)
	}
	// Output:
	// from the index
	// from the cache
	// from the cache
}

// An observer counts. The names of policies come from the configuration, so they may be labels.
func ExampleObserver() {
	limiter := algorithms.NewMemory(nil)
	denied := map[string]int{} // a real one locks
	opts := &ratelimit.Options{Observers: []ratelimit.Observer{ratelimit.ObserverFunc(func(_ context.Context, e ratelimit.Event) {
		if e.Kind != ratelimit.Decided {
			return
		}
		for _, p := range e.Verdict.Policies {
			if e.Verdict.Status == http.StatusTooManyRequests && !p.Decision.Allowed {
				denied[p.Name]++
			}
		}
	})}}
	limited := ratelimit.Must(ratelimit.New(limiter, opts,
		ratelimit.Policy{Name: "second", Key: keyfunc.IP(nil), Limit: algorithms.TokenBucket(10, time.Second)},
		ratelimit.Policy{Name: "day", Key: keyfunc.IP(nil), Limit: algorithms.TokenBucket(3, 24*time.Hour)}))

	h := limited.Handler(http.NotFoundHandler())
	for range 5 {
		h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil))
	}
	fmt.Println(denied)
	// Output:
	// map[day:2]
}

// Shutdown waits for the requests that a leaky bucket holds, so Release lets them go. Close comes after Shutdown, and
// before the limiter's Close, because it returns units to the limiter.
func ExampleMiddleware_Close() {
	limiter := algorithms.NewMemory(nil)
	exports := ratelimit.Must(ratelimit.New(limiter, nil, ratelimit.Policy{
		Name: "exports", Key: keyfunc.IP(nil), Limit: algorithms.LeakyBucket(1, time.Minute).WithBurst(5),
	}))
	server := &http.Server{Handler: exports.Handler(http.NotFoundHandler())}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Println(err)
		return
	}
	server.RegisterOnShutdown(exports.Release)
	done := make(chan error)
	go func() { done <- server.Serve(listener) }()

	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	fmt.Println(server.Shutdown(ctx), exports.Close(ctx))
	fmt.Println(errors.Is(<-done, http.ErrServerClosed))
	// Output:
	// <nil> <nil>
	// true
}
