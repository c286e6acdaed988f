package replay

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/keyfunc"
	ratelimit "github.com/penstock-go/penstock/middleware"
)

const deadline = time.Minute // for what takes milliseconds

// requestsOf returns a log of requests, each "METHOD path" a second after the one before.
func requestsOf(requests ...string) string {
	var b strings.Builder
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, request := range requests {
		method, path, _ := strings.Cut(request, " ")
		fmt.Fprintf(&b, `{"time":%q,"address":"192.0.2.1","method":%q,"path":%q,"status":200}`+"\n", at.Format(time.RFC3339Nano), method, path)
		at = at.Add(time.Second)
	}
	return b.String()
}

// TestHandlers: whatever routes requests, the Middlewares around a route decide, and no handler of the service runs.
func TestHandlers(t *testing.T) {
	t.Parallel()
	work := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { t.Errorf("%s %s ran its handler", r.Method, r.URL) })
	type wrap func(name string) func(http.Handler) http.Handler
	muxOf := func(limit wrap) *http.ServeMux {
		mux := http.NewServeMux()
		mux.Handle("GET /orders/{id}", limit("orders")(work))
		mux.Handle("GET /free", work)
		mux.Handle("GET /both", limit("outer")(limit("inner")(work)))
		return mux
	}
	for name, tt := range map[string]struct {
		build func(limit wrap) http.Handler
		want  map[string]int64
	}{
		"ServeMux":                {func(limit wrap) http.Handler { return muxOf(limit) }, map[string]int64{"orders": 2, "outer": 1, "inner": 1}},
		"Middleware and ServeMux": {func(limit wrap) http.Handler { return limit("all")(muxOf(limit)) }, map[string]int64{"all": 5, "orders": 2, "outer": 1, "inner": 1}},
		"ServeMux in a ServeMux": {func(limit wrap) http.Handler {
			mux := http.NewServeMux()
			mux.Handle("/", limit("all")(muxOf(limit)))
			return mux
		}, map[string]int64{"all": 5, "orders": 2, "outer": 1, "inner": 1}},
		"chi": {func(limit wrap) http.Handler {
			r := chi.NewRouter()
			r.Use(limit("all"))
			r.With(limit("orders")).Get("/orders/{id}", work)
			r.Get("/free", work)
			r.Route("/both", func(r chi.Router) {
				r.Use(limit("outer"))
				r.Method("GET", "/", limit("inner")(work))
			})
			r.NotFound(limit("none")(work).ServeHTTP)
			return r
		}, map[string]int64{"all": 5, "orders": 2, "outer": 1, "inner": 1, "none": 1}},
		"chi in a ServeMux": {func(limit wrap) http.Handler {
			r := chi.NewRouter()
			r.With(limit("orders")).Get("/orders/{id}", work)
			mux := http.NewServeMux()
			mux.Handle("/orders/", limit("all")(r))
			return mux
		}, map[string]int64{"all": 2, "orders": 2}},
		"ServeMux in chi": {func(limit wrap) http.Handler {
			r := chi.NewRouter()
			r.Handle("/*", limit("all")(muxOf(limit)))
			return r
		}, map[string]int64{"all": 5, "orders": 2, "outer": 1, "inner": 1}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			service := func(l algorithms.Limiter) (http.Handler, error) {
				return tt.build(func(name string) func(http.Handler) http.Handler {
					return ratelimit.Must(ratelimit.New(l, nil, ratelimit.Policy{Name: name, Limit: algorithms.FixedWindow(100, time.Hour)})).Handler
				}), nil
			}
			r := reportOf(t, service, requestsOf("GET /orders/1", "GET /orders/2", "GET /free", "GET /both", "GET /nothing"), Options{})
			got := make(map[string]int64)
			for _, p := range r.Policies {
				got[p.Policy] = p.Results[0].Requests
			}
			if fmt.Sprint(got) != fmt.Sprint(tt.want) || r.Unmet != nil {
				t.Errorf("got %v, and no request for %v; want %v", got, r.Unmet, tt.want)
			}
		})
	}
}

// TestForeignHandlers: Run refuses handlers that it cannot look into, and reports policies behind such handlers.
func TestForeignHandlers(t *testing.T) {
	t.Parallel()
	failed := errors.New("failed")
	limit := func(l algorithms.Limiter) http.Handler {
		return ratelimit.Must(ratelimit.New(l, nil, ratelimit.Policy{Name: "hidden", Limit: algorithms.FixedWindow(100, time.Hour)})).Handler(served)
	}
	for name, tt := range map[string]struct {
		service build
		want    string
	}{
		"foreign": {func(l algorithms.Limiter) (http.Handler, error) { return http.StripPrefix("/v1", limit(l)), nil }, "http.HandlerFunc"},
		"nil":     {func(algorithms.Limiter) (http.Handler, error) { return nil, nil }, "the handler is <nil>"},
		"no Middleware": {func(algorithms.Limiter) (http.Handler, error) {
			return ratelimit.Must(ratelimit.New(algorithms.NewMemory(nil), nil, ratelimit.Policy{Name: "p", Limit: algorithms.Nobody()})).Handler(served), nil
		}, "http.HandlerFunc"},
		"no policy": {func(algorithms.Limiter) (http.Handler, error) { return http.NewServeMux(), nil }, "no Middleware"},
		"error":     {func(algorithms.Limiter) (http.Handler, error) { return nil, failed }, "replay: failed"},
	} {
		if err := run(t, tt.service, requestsOf("GET /"), io.Discard, Options{}); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want %s in it", name, err, tt.want)
		}
	}
	r := reportOf(t, func(l algorithms.Limiter) (http.Handler, error) {
		mux := http.NewServeMux()
		mux.Handle("/", http.StripPrefix("/v1", limit(l)))
		return mux, nil
	}, requestsOf("GET /v1"), Options{})
	if fmt.Sprint(r.Unmet) != "[hidden]" || r.Unlimited != 1 {
		t.Errorf("got %v unmet and %d unlimited, want the hidden policy and 1", r.Unmet, r.Unlimited)
	}
}

// TestUsersOfLog: the user of a line is the identity, with the tier of Options, and no function of the service is called.
func TestUsersOfLog(t *testing.T) {
	t.Parallel()
	keys := map[string]keyfunc.Key{
		"key": keyfunc.APIKey("Authorization", func(context.Context, string) (keyfunc.Identity, error) {
			t.Error("the lookup was called")
			return keyfunc.Identity{}, keyfunc.ErrUnknown
		}),
		"user": keyfunc.User(noUser),
	}
	for name, key := range keys {
		service := func(l algorithms.Limiter) (http.Handler, error) {
			p := ratelimit.Policy{
				Name: "p", Key: key, Limit: algorithms.FixedWindow(1, time.Hour),
				Tiers: map[string]algorithms.Limit{"pro": algorithms.FixedWindow(3, time.Hour)},
			}
			mux := http.NewServeMux()
			mux.Handle("/", ratelimit.Must(ratelimit.New(l, &ratelimit.Options{Logger: slog.New(slog.DiscardHandler)}, p)).Handler(served))
			return mux, nil
		}
		one := requestsOf("GET /", "GET /", "GET /", "GET /")
		log := strings.ReplaceAll(one, `"address"`, `"user":"ann b","address"`) + strings.ReplaceAll(one, `"address"`, `"user":"bob","address"`) + one
		r := reportOf(t, service, log, Options{Tiers: map[string]string{"bob": "pro"}})
		if r.Refused[http.StatusTooManyRequests] != 4 || r.Refused[http.StatusUnauthorized] != 4 {
			t.Errorf("%s: got refusals %v, want 3 of one user and 1 of the other, and 4 without a user", name, r.Refused)
		}
		if denied := r.Policies[0].MostDenied; len(denied) != 1 || denied[0].Key != "usr=ann%20b" {
			t.Errorf("%s: got %+v, want the user of the log", name, denied)
		}
	}
}

// TestServerOnly: a replay bans in the log's time, waits for no queue, and reports to no observer.
func TestServerOnly(t *testing.T) {
	t.Parallel()
	service := func(l algorithms.Limiter) (http.Handler, error) {
		o := &ratelimit.Options{Observers: []ratelimit.Observer{ratelimit.ObserverFunc(func(_ context.Context, e ratelimit.Event) {
			t.Errorf("an observer received %v", e.Kind)
		})}}
		mux := http.NewServeMux()
		mux.Handle("/queue", ratelimit.Must(ratelimit.New(l, o, ratelimit.Policy{Name: "queue", Limit: algorithms.LeakyBucket(1, time.Hour).WithBurst(10)})).Handler(served))
		mux.Handle("/ban", ratelimit.Must(ratelimit.New(l, o, ratelimit.Policy{
			Name: "ban", Limit: algorithms.FixedWindow(1, time.Second), Ban: &ratelimit.Ban{Denials: 2, Within: time.Minute, For: time.Minute},
		})).Handler(served))
		return mux, nil
	}
	var requests []string
	for range 100 {
		requests = append(requests, "GET /ban")
	}
	log := strings.Repeat(requestsOf("GET /ban"), 2) + requestsOf(requests...) + requestsOf("GET /queue", "GET /queue", "GET /queue")
	begun := time.Now()
	r := reportOf(t, service, log, Options{})
	// Of three requests in the first second, two are denied, and bring a ban of a minute.
	if got, want := r.Refused[http.StatusTooManyRequests], 2+59; got != want || time.Since(begun) > deadline {
		t.Errorf("got %d denials after %v, want %d at once", got, time.Since(begun), want)
	}
}

// TestOptions: the error reports every misconfiguration, and 0 is a number in flags.
func TestOptions(t *testing.T) {
	t.Parallel()
	err := Run(t.Context(), nil, &Options{Format: "xml", DurationUnit: "h", DenyClients: 101, Headroom: 1e9})
	for _, want := range []string{"no files", `"xml"`, `"h"`, "clients to deny", "headroom"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s in it", err, want)
		}
	}
	if err := Run(t.Context(), nil, nil); err == nil || !strings.Contains(err.Error(), "no files") {
		t.Errorf("got %v, want no files", err)
	}
	for _, tt := range []struct {
		o    Options
		want targets
	}{
		{Options{}, targets{0.01, 0.2}},
		{Options{DenyClients: 5, Headroom: none}, targets{0.05, 0}}, {Options{DenyClients: none}, targets{0, 0.2}},
	} {
		if got := tt.o.targets(); got != tt.want {
			t.Errorf("%+v: got %v, want %v", tt.o, got, tt.want)
		}
	}
	flags := flag.NewFlagSet("service", flag.ContinueOnError)
	parsed := Flags(flags)
	if err := flags.Parse([]string{"-duration-unit", "ms", "-deny-clients", "10", "-headroom", "0"}); err != nil {
		t.Fatal(err)
	}
	if got, want := parsed.targets(), (targets{0.1, 0}); got != want || parsed.DurationUnit != "ms" {
		t.Errorf("flags: got %v, want %v", got, want)
	}
	var p float64
	set := percentage(&p)
	if err := set("0"); err != nil || p != none {
		t.Errorf("got %v and %v, want none", p, err)
	}
	for _, bad := range []string{"-1", "x", "NaN"} {
		if set(bad) == nil {
			t.Errorf("%s: got no error", bad)
		}
	}
}

// TestCheckInMiddleware: a middleware that calls Check or the limiter by itself is replayed as far as its calls go.
func TestCheckInMiddleware(t *testing.T) {
	t.Parallel()
	service := func(l algorithms.Limiter) (http.Handler, error) {
		m := ratelimit.Must(ratelimit.New(l, nil, ratelimit.Policy{Name: "own", Limit: algorithms.FixedWindow(1, time.Hour), ChargeIf: func(int) bool { return true }}))
		r := chi.NewRouter()
		r.Use(m.Handler, func(next http.Handler) http.Handler {
			own := ratelimit.Must(ratelimit.New(l, nil, ratelimit.Policy{
				Name: "checked", Limit: algorithms.FixedWindow(1, time.Hour), ChargeIf: func(int) bool { return true },
			}))
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if v, _ := own.Check(r); v.Allowed {
					next.ServeHTTP(w, r)
				}
			})
		})
		r.Get("/", served)
		return r, nil
	}
	r := reportOf(t, service, requestsOf("GET /", "GET /"), Options{})
	if len(r.Policies) != 2 || r.Policies[0].Policy != "checked" || r.Policies[0].Results[0].Requests != 1 {
		t.Errorf("got %+v, want both policies, and one request of the inner one", r.Policies)
	}
}
