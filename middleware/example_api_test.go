// Examples of the parts of the API: one each.

package ratelimit_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/keyfunc"
	"github.com/penstock-go/penstock/middleware"
)

// Options.ClientIP names the proxies once. Policies without a Key count the address that it finds.
func ExampleOptions_clientIP() {
	opts := &ratelimit.Options{ClientIP: keyfunc.IP(&keyfunc.IPOptions{
		Trusted: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}, // the load balancers
	}), PlainKeys: true}
	limited := ratelimit.Must(ratelimit.New(algorithms.NewMemory(nil), opts, ratelimit.Policy{
		Name: "api", Limit: algorithms.TokenBucket(1, time.Hour),
	}))
	r := httptest.NewRequest("GET", "/", nil)
	r.Header.Set("X-Forwarded-For", "203.0.113.7")
	for range 2 {
		limited.Handler(http.NotFoundHandler()).ServeHTTP(httptest.NewRecorder(), r)
	}
	fmt.Println(limited.TopDenied("api", 1)[0].Key)
	// Output: ip=203.0.113.7
}

// A customer's limit comes from the customer's row, which authentication has put into the context.
func ExamplePolicy_limitOf() {
	type customer struct{ perMinute int64 }
	type customerKey struct{}
	limited := ratelimit.Must(ratelimit.New(algorithms.NewMemory(nil), nil, ratelimit.Policy{
		Name: "api", Limit: algorithms.TokenBucket(10, time.Minute), // for requests without a customer
		LimitOf: func(r *http.Request) (algorithms.Limit, error) {
			switch c, ok := r.Context().Value(customerKey{}).(customer); {
			case !ok:
				return algorithms.Limit{}, nil // none of its own
			case c.perMinute == 0:
				return algorithms.Nobody(), nil // a limit of 0 is invalid
			default:
				return algorithms.TokenBucket(c.perMinute, time.Minute), nil
			}
		},
	}))
	r := httptest.NewRequest("GET", "/", nil)
	r = r.WithContext(context.WithValue(r.Context(), customerKey{}, customer{perMinute: 250}))
	w := httptest.NewRecorder()
	limited.Handler(http.NotFoundHandler()).ServeHTTP(w, r)
	fmt.Println(w.Header().Get("RateLimit-Policy"))
	// Output: "api";q=250;w=60
}

// A limit after the body was read: five logins per minute for each user name. The policy is Hidden, because its key is
// another person's name. The limiter counts the name that the handler has put into the context.
func ExampleMiddleware_Deny() {
	type userKey struct{}
	byName := keyfunc.Custom("login", func(r *http.Request) (string, error) {
		name, _ := r.Context().Value(userKey{}).(string)
		return name, nil
	})
	logins := ratelimit.Must(ratelimit.New(algorithms.NewMemory(nil), nil, ratelimit.Policy{
		Name: "logins", Key: byName, Limit: algorithms.SlidingWindowLog(5, time.Minute), Hidden: true,
	}))
	login := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var form struct{ User, Password string }
		if err := json.NewDecoder(io.LimitReader(r.Body, 4096)).Decode(&form); err != nil || form.User == "" {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		r = r.WithContext(context.WithValue(r.Context(), userKey{}, form.User))
		if v, _ := logins.Check(r); !v.Allowed {
			logins.Deny(w, r, v)
			return
		}
		w.WriteHeader(http.StatusUnauthorized) // the password was wrong
	})
	for range 6 {
		w := httptest.NewRecorder()
		login.ServeHTTP(w, httptest.NewRequest("POST", "/login", strings.NewReader(`{"user":"ann","password":"guess"}`)))
		fmt.Print(w.Code, " ")
	}
	// Output: 401 401 401 401 401 429
}

// The cost is in the body: the handler reads max_tokens, and serves the rest under a policy that reserves it. Settle
// then corrects the reservation.
func ExampleMiddleware_Handler_body() {
	type tokensKey struct{}
	tokens := ratelimit.Must(ratelimit.New(algorithms.NewMemory(nil), nil, ratelimit.Policy{
		Name: "tokens", Limit: algorithms.TokenBucket(1_000, time.Minute),
		Cost: func(r *http.Request) int64 {
			reserved, _ := r.Context().Value(tokensKey{}).(int64)
			return max(reserved, 1)
		},
	}))
	complete := tokens.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := ratelimit.Settle(r.Context(), 120); err != nil { // the tokens that were generated
			fmt.Println(err)
		}
	}))
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body struct {
			MaxTokens int64 `json:"max_tokens"`
		}
		if err := json.NewDecoder(io.LimitReader(r.Body, 1<<20)).Decode(&body); err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		reserved := min(max(body.MaxTokens, 1), 1_000) // never trust a client's number
		complete.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), tokensKey{}, reserved)))
	})
	for range 3 {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest("POST", "/v1/completions", strings.NewReader(`{"max_tokens":600}`)))
		fmt.Println(w.Code, w.Header().Get("RateLimit-Remaining"))
	}
	// Output:
	// 200 400
	// 200 280
	// 200 160
}

// A misconfiguration that only requests show.
func ExampleMiddleware_Findings() {
	limited := ratelimit.Must(ratelimit.New(algorithms.NewMemory(nil), &ratelimit.Options{Logger: slog.New(slog.DiscardHandler)}, ratelimit.Policy{
		Name: "export", Limit: algorithms.TokenBucket(10, time.Minute), Cost: func(*http.Request) int64 { return 50 },
	}))
	limited.Handler(http.NotFoundHandler()).ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil))
	for _, f := range limited.Findings() {
		fmt.Println(f.Code, f.Policy, f.Sentence)
	}
	// Output: PS107 export A request cost more than the burst, and is denied for ever.
}

// A hidden policy denies without numbers.
func ExamplePolicy_hidden() {
	limited := ratelimit.Must(ratelimit.New(algorithms.NewMemory(nil), nil, ratelimit.Policy{
		Name: "by-name", Key: keyfunc.Const("ann"), Limit: algorithms.TokenBucket(1, time.Minute), Hidden: true,
	}))
	for range 2 {
		w := httptest.NewRecorder()
		limited.Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})).ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
		fmt.Println(w.Code, w.Header().Get("RateLimit-Policy") == "", w.Header().Get("Retry-After") != "")
	}
	// Output:
	// 200 true false
	// 429 true true
}

// An address may send 20 unknown API keys per minute. Then keys that are new from it wait for their turns, and keys that
// were valid before pass. This needs Options.ClientIP.
func ExampleOptions_guesses() {
	apiKey := keyfunc.APIKey("X-API-Key", func(_ context.Context, key string) (keyfunc.Identity, error) {
		if key != "sk_live_1" && key != "sk_live_2" {
			return keyfunc.Identity{}, keyfunc.ErrUnknown
		}
		return keyfunc.Identity{ID: key}, nil
	})
	limited := ratelimit.Must(ratelimit.New(algorithms.NewMemory(nil), &ratelimit.Options{ClientIP: keyfunc.IP(nil)}, ratelimit.Policy{
		Name: "api", Key: apiKey, Limit: algorithms.TokenBucket(100, time.Minute),
	}))
	try := func(key string) int {
		r, w := httptest.NewRequest("GET", "/", nil), httptest.NewRecorder()
		r.Header.Set("X-API-Key", key)
		limited.Handler(http.NotFoundHandler()).ServeHTTP(w, r)
		return w.Code
	}
	fmt.Println("sk_live_1:", try("sk_live_1"))
	answers := make(map[int]int)
	for i := range 100 {
		answers[try(fmt.Sprint("guess-", i))]++
	}
	fmt.Println("guesses:", answers)
	fmt.Println("sk_live_1:", try("sk_live_1"))
	fmt.Println("sk_live_2:", try("sk_live_2"))
	// Output:
	// sk_live_1: 404
	// guesses: map[401:20 429:80]
	// sk_live_1: 404
	// sk_live_2: 429
}
