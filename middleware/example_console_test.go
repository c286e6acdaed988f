// Examples of the console.

package middleware_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/algorithms/overrides"
	"github.com/penstock-go/penstock/keyfunc"
	ratelimit "github.com/penstock-go/penstock/middleware"
)

// A customer calls: why is every request denied?
func ExampleConsole() {
	limiter := algorithms.NewMemory(nil)
	limited := ratelimit.Must(ratelimit.New(limiter, nil, ratelimit.Policy{
		Name: "reports", Key: keyfunc.IP(nil), Limit: algorithms.FixedWindow(2, 24*time.Hour),
	}))
	for range 3 {
		_, _ = limited.Check(httptest.NewRequest("GET", "/", nil))
	}

	ctx, console := context.Background(), ratelimit.NewConsole(limited)
	customer := ratelimit.Subject{Policy: "reports", Key: "ip=192.0.2.1"}
	e, _ := console.Explain(ctx, customer)
	fmt.Println(e.Denied, e.Reason, e.Limits[0].Limit, e.Limits[0].Remaining)

	_ = console.Grant(ctx, customer, 1)
	e, _ = console.Explain(ctx, customer)
	fmt.Println(e.Denied, e.Limits[0].Remaining)
	// Output:
	// true default fixed-window 2/1d 0
	// false 1
}

// The console over HTTP lets in whom a function lets in. Mount it where clients do not come.
func ExampleConsole_Handler() {
	limiter := algorithms.NewMemory(nil)
	limited := ratelimit.Must(ratelimit.New(limiter, &ratelimit.Options{Overrides: overrides.NewMemory(), Logger: quiet}, ratelimit.Policy{
		Name: "reports", Key: keyfunc.IP(nil), Limit: algorithms.TokenBucket(2, time.Minute),
	}))
	admin := ratelimit.Must(ratelimit.NewConsole(limited).Handler(func(r *http.Request) (string, error) {
		who, password, _ := r.BasicAuth()
		if password != "of your own checking" {
			return "", errors.New("wrong password")
		}
		return who, nil
	}))
	mux := http.NewServeMux()
	mux.Handle("/limits/", http.StripPrefix("/limits", admin))

	send := func(method, target, body string) {
		r := httptest.NewRequest(method, target, strings.NewReader(body))
		r.SetBasicAuth("alice", "of your own checking")
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, r)
		fmt.Println(strings.TrimSpace(fmt.Sprintln(w.Code, w.Body)))
	}
	send("PUT", "/limits/overrides/reports?key=ip%3D192.0.2.1", `{"limit": "100/1m"}`)
	send("GET", "/limits/overrides/reports", "")
	send("POST", "/limits/ban", `{"policy": "reports", "key": "*"}`)
	// Output:
	// 204
	// 200 {"ip=192.0.2.1":{"limit":"token-bucket 100/1m"}}
	// 400 {"type":"about:blank","title":"Bad Request","status":400,"detail":"overrides: invalid override of policy \"reports\": a ban is of one key; the limit that denies everyone is \"nobody\""}
}
