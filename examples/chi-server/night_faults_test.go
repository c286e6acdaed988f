// The faults of the night shift.

package main

import (
	"testing"
	"time"

	"github.com/penstock-go/penstock/internal/redistest"
)

var faults = []fault{
	{
		name:  "Redis is killed",
		begin: func(_ *testing.T, n *night) { n.redis.Kill(); n.proxy.Set(redistest.Refuse()) },
		alert: "RateLimitFailedClosed login",
		also:  []string{"RateLimitFailedClosed login-account", "RateLimitFailedClosed login-capacity", "RateLimitDegraded a", "RateLimitDegraded b"},
		says:  "Redis does not decide",
		cause: `reason="unavailable"|Could not connect`,
	},
	{
		name:  "Redis is 100 ms away",
		begin: func(_ *testing.T, n *night) { n.proxy.Set(redistest.Delay(100 * time.Millisecond)) },
		alert: "RateLimitDegraded a",
		also:  []string{"RateLimitFailedClosed login", "RateLimitFailedClosed login-account", "RateLimitFailedClosed login-capacity", "RateLimitDegraded b"},
		says:  "redis-cli --latency",
		cause: `\d+ \d+ 1\d\d\.\d+ \d+`,
	},
	{
		name: "one client ignores Retry-After",
		begin: func(t *testing.T, n *night) {
			n.flow(t, 125, func() { n.send("GET /v1/orders/1", "", "X-Forwarded-For", "192.0.2.1") })
		},
		alert: "RateLimitOneOffender orders",
		says:  "ignores Retry-After",
		cause: `"client": "ip=`,
	},
}
