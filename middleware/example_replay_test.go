// An example of a replay: requests in virtual time.

package ratelimit_test

import (
	"fmt"
	"net/http/httptest"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/middleware"
)

// A log tells whom a limit would have denied. The limiter takes the time from the log, so a replay of a day takes
// seconds. Package replay replays whole access logs, and proposes limits.
func ExampleMiddleware_Check_replay() {
	log := []struct{ at, client, path string }{
		{"12:00:00", "192.0.2.1", "/orders/1"},
		{"12:00:10", "192.0.2.1", "/orders/2"},
		{"12:00:20", "192.0.2.1", "/orders/3"},
		{"12:00:30", "192.0.2.7", "/orders/4"},
		{"12:00:55", "192.0.2.1", "/orders/5"},
	}
	var now time.Time
	limiter := algorithms.NewMemory(&algorithms.MemoryOptions{Now: func() time.Time { return now }})
	orders := ratelimit.Must(ratelimit.New(limiter, nil, ratelimit.Policy{
		Name: "orders", Limit: algorithms.TokenBucket(2, time.Minute),
	}))
	for _, line := range log {
		now, _ = time.Parse(time.DateTime, "2026-11-23 "+line.at)
		r := httptest.NewRequest("GET", line.path, nil)
		r.RemoteAddr = line.client + ":1"
		v, err := orders.Check(r)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(line.at, line.client, v.Allowed, v.RetryAfter)
	}
	// Output:
	// 12:00:00 192.0.2.1 true 0s
	// 12:00:10 192.0.2.1 true 0s
	// 12:00:20 192.0.2.1 false 10s
	// 12:00:30 192.0.2.7 true 0s
	// 12:00:55 192.0.2.1 true 0s
}
