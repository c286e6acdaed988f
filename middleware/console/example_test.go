package console_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/middleware"
	"github.com/penstock-go/penstock/middleware/console"
	"github.com/penstock-go/penstock/middleware/overrides"
)

// A customer calls: why is every request denied?
func ExampleConsole() {
	limited := ratelimit.Must(ratelimit.New(algorithms.NewMemory(nil), nil, ratelimit.Policy{
		Name: "reports", Limit: algorithms.FixedWindow(2, 24*time.Hour),
	}))
	for range 3 {
		_, _ = limited.Check(httptest.NewRequest("GET", "/", nil))
	}

	ctx, operator := context.Background(), console.New(limited)
	customer := console.Subject{Policy: "reports", IP: netip.MustParseAddr("192.0.2.1")}
	e, _ := operator.Explain(ctx, customer)
	fmt.Println(e.Subject.Key, e.Denied, e.Reason, e.Limits[0].Limit, e.Limits[0].Remaining)

	_ = operator.Grant(ctx, customer, 1)
	e, _ = operator.Explain(ctx, customer)
	fmt.Println(e.Denied, e.Limits[0].Remaining)
	// Output:
	// ip=192.0.2.1 true default fixed-window 2/1d 0
	// false 1
}

// The console refuses a key that the policy never makes.
func ExampleConsole_Ban() {
	limited := ratelimit.Must(ratelimit.New(algorithms.NewMemory(nil), &ratelimit.Options{Overrides: overrides.NewMemory()},
		ratelimit.Policy{Name: "orders", Key: user, Limit: algorithms.TokenBucket(60, time.Minute)}))
	operator, inAnHour := console.New(limited), time.Now().Add(time.Hour)

	fmt.Println(operator.Ban(context.Background(), console.Subject{Policy: "orders", Key: "k-pro"}, inAnHour))
	fmt.Println(operator.Ban(context.Background(), console.Subject{Policy: "orders", ID: "42"}, inAnHour))
	// Output:
	// ratelimit: invalid check: policy "orders" makes no such key: want KIND=VALUE, or several of these joined by |; its kinds are usr
	// <nil>
}

// Mount the console where clients do not reach it.
func ExampleConsole_Handler() {
	slog.SetDefault(quiet)
	limited := ratelimit.Must(ratelimit.New(algorithms.NewMemory(nil), &ratelimit.Options{Overrides: overrides.NewMemory()},
		ratelimit.Policy{Name: "reports", Limit: algorithms.TokenBucket(2, time.Minute)}))
	admin := ratelimit.Must(console.New(limited).Handler(func(r *http.Request) (string, error) {
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
	send("PUT", "/limits/overrides/reports?ip=2001:db8::1", `{"limit": "100/1m"}`)
	send("GET", "/limits/overrides/reports", "")
	send("POST", "/limits/ban", `{"policy": "reports", "key": "*"}`)
	// Output:
	// 204
	// 200 {"ip=2001:db8::/64":{"limit":"token-bucket 100/1m"}}
	// 400 {"type":"about:blank","title":"Bad Request","status":400,"detail":"ratelimit: invalid override of policy \"reports\": a ban is for one key: to deny everyone, set the limit \"nobody\""}
}
