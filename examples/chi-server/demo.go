package main

import (
	"net/http"

	"github.com/penstock-go/penstock/examples/chi-server/demo"
)

// newDemo returns the page at /. Its sandboxes count in memory, or with
// -demo-outage in Redis, through a client and below a prefix of their own: what
// is done to them there is done to nobody else.
func newDemo(c config) (*demo.Demo, error) {
	o := &demo.Options{Routes: demoRoutes, Headers: c.headers, Prefix: c.prefix + "-demo"}
	if c.demoOutage {
		o.Redis = c.redis.open()
	}
	return demo.New(o)
}

// demoCost is what the page's requests cost to the policy that keeps it from
// being used to wear the server out: a comparison is thousands of decisions.
func demoCost(r *http.Request) int64 {
	if r.URL.Path == "/demo/compare" {
		return 20
	}
	return 1
}

// demoRoutes are what the page can send.
var demoRoutes = []demo.Route{
	{
		Title: "Get an order", Method: http.MethodGet, Path: "/v1/orders/1",
		Policy: "orders", Limit: "token-bucket 60/1m burst 10",
		Note: "Ten at once, then one each second.",
	},
	{
		Title: "Search", Method: http.MethodGet, Path: "/v1/search?q=water",
		Policy: "search", Limit: "sliding-window-counter 30/1m",
		Note: "About thirty in any minute.",
	},
	{
		Title: "Search deeply", Method: http.MethodGet, Path: "/v1/search?q=water&deep=1",
		Policy: "search", Limit: "sliding-window-counter 30/1m",
		Note: "Costs five units of the same thirty.",
	},
	{
		Title: "List reports", Method: http.MethodGet, Path: "/v1/reports",
		Policy: "reports", Limit: "fixed-window 20/1m",
		Note: "Twenty in each minute of the clock.",
	},
	{
		Title: "Log in, wrong password", Method: http.MethodPost, Path: "/v1/login", Body: `{"user":"demo","password":"guess"}`,
		Policy: "login", Limit: "sliding-window-log 5/1m",
		Note: "Five failures in any minute, by address. 401 until then, and without Redis 503.",
	},
	{
		Title: "Log in", Method: http.MethodPost, Path: "/v1/login", Body: `{"user":"demo","password":"demo"}`,
		Policy: "login", Limit: "sliding-window-log 5/1m",
		Note: "What succeeds does not count.",
	},
	{
		Title: "Send a text message", Method: http.MethodPost, Path: "/v1/sms",
		Policy: "sms", Limit: "leaky-bucket 2/1s burst 5",
		Note: "A queue of five, of which one is served each half second: answers come late, and evenly.",
	},
	{
		Title: "Create a charge", Method: http.MethodPost, Path: "/v1/charges",
		Policy: "charges-merchant", Limit: "token-bucket 100/1m burst 10",
		Note: "Needs an API key, whose plan says how much: 100, 1000 or 5000 a minute. A second limit, of all merchants together, is not advertised.",
	},
	{
		Title: "Complete a text", Method: http.MethodPost, Path: "/v1/completions", Body: `{"max_tokens":2000}`,
		Policy: "completions", Limit: "token-bucket 10000/1m",
		Note: "Needs an API key. 500 tokens are reserved, and 1500 are charged while it is served.",
	},
}
