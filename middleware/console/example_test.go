package console_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/keyfunc"
	"github.com/penstock-go/penstock/middleware"
	"github.com/penstock-go/penstock/middleware/console"
	"github.com/penstock-go/penstock/middleware/overrides"
)

// A customer calls: why am I denied? The answer names the limit, and where it comes
// from.
func ExampleConsole_Who() {
	slog.SetDefault(quiet)
	memory, minute := algorithms.NewMemory(nil), algorithms.TokenBucket
	limited := ratelimit.Must(ratelimit.New(memory, nil,
		ratelimit.Policy{Name: "charges", Key: user, Limit: minute(10, 24*time.Hour), Tiers: map[string]algorithms.Limit{"pro": minute(2, 24*time.Hour)}},
		ratelimit.Policy{Name: "orders", Key: keyfunc.Join(user, keyfunc.Route()), Limit: minute(60, time.Minute)}))
	for range 3 {
		_, _ = limited.Check(asUser("42", "pro"))
	}
	operator := console.New(limited)
	customer := console.Subject{ID: "42"}
	for _, s := range ratelimit.Must(operator.Who(context.Background(), customer)) {
		fmt.Println(s.Policy, s.Key, s.Verdict, s.Reason, s.Limits[0].Limit, s.Limits[0].Remaining)
	}

	customer.Policy = "charges"
	_, _ = operator.Grant(context.Background(), customer, 1)
	fmt.Println(ratelimit.Must(operator.Who(context.Background(), customer))[0].Says)
	// Output:
	// charges usr=42 denied tier token-bucket 2/1d 0
	// orders usr=42|rt=unmatched admitted default token-bucket 60/1m 58
	// charges admits usr=42: token-bucket 2/1d has 1 left, from tier pro
}

// The console refuses a key that the policy never makes.
func ExampleConsole_Ban() {
	limited := ratelimit.Must(ratelimit.New(algorithms.NewMemory(nil), &ratelimit.Options{Overrides: overrides.NewMemory()},
		ratelimit.Policy{Name: "orders", Key: user, Limit: algorithms.TokenBucket(60, time.Minute)}))
	operator, inAnHour := console.New(limited), time.Now().Add(time.Hour)

	fmt.Println(operator.Ban(context.Background(), console.Subject{Policy: "orders", Key: "k-pro"}, inAnHour, "alice"))
	fmt.Println(operator.Ban(context.Background(), console.Subject{Policy: "orders", ID: "42"}, inAnHour, "alice"))
	// Output:
	// ratelimit: invalid check: policy "orders" makes no such key: want KIND=VALUE, or several of these joined by |; its keys are usr
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
	send("GET", "/limits/who?ip=2001:db8::1", "")
	send("PUT", "/limits/overrides/reports?ip=2001:db8::1", `{"limit": "100/1m"}`)
	send("POST", "/limits/ban", `{"policy": "reports", "key": "*"}`)
	// Output:
	// 200 {
	//   "policies": [
	//     {
	//       "says": "reports admits ip=2001:db8::/64: token-bucket 2/1m has 2 left, from default",
	//       "policy": "reports",
	//       "key": "ip=2001:db8::/64",
	//       "verdict": "admitted",
	//       "reason": "default",
	//       "limits": [
	//         {
	//           "from": "default",
	//           "limit": "token-bucket 2/1m",
	//           "remaining": 2,
	//           "reset_after": "0s",
	//           "unit_after": "0s",
	//           "source": "local"
	//         }
	//       ]
	//     }
	//   ]
	// }
	// 204
	// 400 {"type":"about:blank","title":"Bad Request","status":400,"detail":"ratelimit: invalid override of policy \"reports\": a ban is for one key: to deny everyone, set the limit \"nobody\""}
}
