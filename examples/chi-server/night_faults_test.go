//go:build unix

// The faults of the night shift.

package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/penstock-go/penstock/internal/redistest"
)

var faults = []fault{
	{
		name:  "Redis is killed",
		begin: func(_ *testing.T, n *night) { n.redis.Kill(); n.proxy.Set(redistest.Refuse()) },
		alert: "RateLimitFailedClosed login",
		also:  slices.Concat(failedClosed, degraded),
		says:  "Redis does not decide",
		cause: `reason="unavailable"|Could not connect`,
	},
	{
		name:  "Redis is 100 ms away",
		begin: func(_ *testing.T, n *night) { n.proxy.Set(redistest.Delay(100 * time.Millisecond)) },
		alert: "RateLimitDegraded a",
		also:  slices.Concat(failedClosed, degraded),
		says:  "redis-cli --latency",
		cause: `\d+ \d+ 1\d\d\.\d+ \d+`,
	},
	{
		name: "a tenth of the round trips stalls",
		begin: func(t *testing.T, n *night) {
			n.repeat(t, 20*time.Millisecond, 180*time.Millisecond, func(stalls bool) {
				f := redistest.Pass()
				if stalls {
					f = redistest.DelayRequests(250 * time.Millisecond)
				}
				n.proxy.Set(f)
			})
		},
		alert: "RateLimitFailedClosed login",
		also:  slices.Concat(failedClosed, degraded, undecided, flaps),
		says:  "redis-cli --latency",
		cause: `^\d+ [1-9]\d\d+ \d+\.\d+ \d+$`, // the most is far above the average
	},
	{
		name: "the instances lack CPU",
		begin: func(t *testing.T, n *night) {
			n.repeat(t, 90*time.Millisecond, 10*time.Millisecond, func(stop bool) {
				for _, i := range n.instances {
					i.signal(map[bool]syscall.Signal{true: syscall.SIGSTOP, false: syscall.SIGCONT}[stop])
				}
			})
		},
		alert: "RateLimitUndecided orders",
		also:  slices.Concat(failedClosed, degraded, undecided, flaps),
		says:  "the process lacks CPU",
		cause: `instance="a"} => [1-9]`,
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
	{
		name: "one customer sends 50 times its limit",
		begin: func(t *testing.T, n *night) {
			n.flow(t, 83, func() { n.send("POST /v1/charges", "", "X-API-Key", "demo-free") })
		},
		alert: "RateLimitOneOffender charges-merchant",
		says:  "the console's who has its account",
		cause: `"client": "usr=`,
	},
	{
		name:   "a deploy halves a limit",
		deploy: [2]string{ordersLimit, "TokenBucket(30, time.Minute).WithBurst(5)"},
		begin: func(t *testing.T, n *night) {
			n.flow(t, 12, func() { n.send("GET /v1/orders/1", "", "X-Forwarded-For", oneOf(customers)) }) // 0.8 of their limit
			for _, i := range n.instances {
				i.deploy(t, n.changed)
			}
		},
		own:   40 * time.Second, // until the bursts are used, and each customer is denied a few times
		alert: "RateLimitDenials orders",
		says:  "Has the limit changed",
		cause: `30/1m burst 5`,
	},
	{
		name:   "one instance has an old limit",
		deploy: [2]string{ordersLimit, "TokenBucket(600, time.Minute).WithBurst(10)"},
		begin: func(t *testing.T, n *night) {
			n.instances[1].deploy(t, n.changed)
		},
		alert: "RateLimitLimitsDiffer orders",
		says:  "A deployment stopped halfway",
		cause: `600/1m burst 10`,
	},
	{
		name:   "each request has a key of its own",
		deploy: [2]string{`Name: "search", Key: client,`, `Name: "search", Key: keyfunc.Header("X-Request-Id"),`},
		begin: func(t *testing.T, n *night) {
			n.flow(t, 60, func() {
				n.send("GET /v1/search?q=x", "", "X-Forwarded-For", "192.0.2.1", "X-Request-Id", strconv.FormatUint(rand.Uint64(), 16))
			})
			for _, i := range n.instances {
				i.deploy(t, n.changed)
			}
		},
		own:   40 * time.Second, // until it has examined a thousand requests
		alert: "RateLimitFinding PS118",
		says:  "status page",
		cause: "none had a key that another one had before",
	},
	{
		name: "a ban is forgotten",
		begin: func(t *testing.T, n *night) {
			n.operate(t, "POST /admin/ban", `{"policy":"*","usr":"merchant-1"}`, http.StatusNoContent)
			n.age(t, "*", 25*time.Hour)
			n.flow(t, 1, func() { n.send("POST /v1/charges", "", "X-API-Key", "demo-free") })
		},
		alert: "RateLimitFinding PS301",
		says:  "status page",
		cause: "Bans in all policies, without an end",
	},
	{
		name: "Redis evicts limits",
		begin: func(t *testing.T, n *night) {
			for _, setting := range []string{"maxmemory-policy allkeys-random", "maxmemory 4mb"} {
				name, value, _ := strings.Cut(setting, " ")
				if err := n.redis.Client().ConfigSet(t.Context(), name, value).Err(); err != nil {
					t.Fatal(err)
				}
			}
			cache, k := n.redis.Client(), 0
			n.flow(t, 50, func() {
				k++
				_ = cache.Set(context.Background(), fmt.Sprint("cache:", k), strings.Repeat("x", 10_000), 0).Err() // the end of the test ends Redis, too
			})
		},
		own:   time.Minute, // between two looks at the settings of Redis
		alert: "RateLimitFinding PS201",
		says:  "status page",
		cause: "Redis evicts limits",
	},
}

const ordersLimit = "TokenBucket(60, time.Minute).WithBurst(10)"

// What a Redis in trouble makes fire, too.
var (
	degraded     = []string{"RateLimitDegraded a", "RateLimitDegraded b"}
	failedClosed = []string{"RateLimitFailedClosed login", "RateLimitFailedClosed login-account", "RateLimitFailedClosed login-capacity"}
	flaps        = []string{"RateLimitBreakerFlaps a", "RateLimitBreakerFlaps b"}
	undecided    = []string{
		"RateLimitUndecided orders", "RateLimitUndecided search", "RateLimitUndecided login", "RateLimitUndecided login-account",
		"RateLimitUndecided login-capacity", "RateLimitUndecided charges-merchant", "RateLimitUndecided charges-capacity",
	}
)
