// All limits of the API, in one table.

package main

import (
	"net/http"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/examples/chi-server/playground"
	"github.com/penstock-go/penstock/keyfunc"
	"github.com/penstock-go/penstock/middleware"
)

// Who is counted. Options.ClientIP finds the address for keyfunc.IP(nil).
var (
	address = keyfunc.IP(nil)
	account = keyfunc.FirstOf(keyfunc.APIKey("X-API-Key", playground.Lookup), keyfunc.APIKey("Authorization", playground.Lookup))
	client  = keyfunc.Join(keyfunc.FirstOf(account, address), keyfunc.Route()) // without an API key, the address
)

// limits has a row for each group of routes. The policies of a row make one
// decision about a request. api.go mounts a row under the name of its first policy.
var limits = [][]ratelimit.Policy{
	{{ // ten orders at once, then one per second
		Name: "orders", Key: client,
		Limit: algorithms.TokenBucket(60, time.Minute).WithBurst(10),
	}},
	{{ // about thirty searches in any minute; a deep search costs five
		Name: "search", Key: client, Cost: searchCost,
		Limit: algorithms.SlidingWindowCounter(30, time.Minute),
	}},
	{{ // twenty reports in each minute of the clock
		Name: "reports", Key: client,
		Limit: algorithms.FixedWindow(20, time.Minute),
	}},
	{{ // ten exports per second, of all clients together; each denied client gets a slot
		Name: "exports", Key: keyfunc.Const("all"), Capacity: true,
		Limit: algorithms.TokenBucket(10, time.Second),
	}},
	{ // failed logins, and none while Redis is unavailable
		{ // five of an address in any minute
			Name: "login", Key: address, ChargeIf: failedLogin, Fail: algorithms.FailClosed,
			Limit: algorithms.SlidingWindowLog(5, time.Minute),
		},
		{ // of an account, from any addresses; hidden, because a stranger must not learn how often others try
			Name: "login-account", Key: keyfunc.Optional(keyfunc.JSONField("login", "user")), Hidden: true, ChargeIf: failedLogin, Fail: algorithms.FailClosed,
			Limit: algorithms.SlidingWindowLog(100, 10*time.Minute), // all visitors of the page share an account
		},
		{ // in all: many addresses that try one password on many accounts
			Name: "login-capacity", Key: keyfunc.Const("logins"), Capacity: true, ChargeIf: failedLogin,
			Limit: algorithms.TokenBucket(1_000, time.Minute),
		},
	},
	{{ // a queue of five messages; the API sends one every half second
		Name: "sms", Key: client,
		Limit: algorithms.LeakyBucket(2, time.Second).WithBurst(5),
	}},
	{
		{ // each merchant, by plan
			Name: "charges-merchant", Key: account,
			Limit: perMinute(100),
			Tiers: map[string]algorithms.Limit{
				"free": perMinute(100), "pro": perMinute(1_000), "enterprise": perMinute(5_000),
			},
		},
		{ // all merchants together: the capacity of the payment provider
			Name: "charges-capacity", Key: keyfunc.Const("all"), Capacity: true,
			Limit: algorithms.TokenBucket(10_000, time.Second),
		},
	},
	{{ // tokens of a language model: the handler settles the 500 reserved tokens
		Name: "completions", Key: account,
		Limit: algorithms.TokenBucket(10_000, time.Minute),
		Cost:  func(*http.Request) int64 { return reservedTokens },
	}},
	{ // requests of the page at /; hidden, because sandboxes have limits of their own
		{
			Name: "demo", Key: address, Hidden: true, Cost: playground.Cost,
			Limit: algorithms.TokenBucket(3_000, time.Minute).WithBurst(1_500),
		},
		{ // open at once: streams, and requests whose bodies have not arrived
			Name: "demo-open", Key: address, Hidden: true,
			Limit: algorithms.Concurrent(24, 10*time.Second),
		},
	},
	{{ // guesses of the operators' token; api.go lets the right one pass
		Name: "console", Key: address,
		Limit:    algorithms.SlidingWindowLog(10, time.Minute),
		ChargeIf: func(status int) bool { return status == http.StatusForbidden },
		Ban:      &ratelimit.Ban{Denials: 10, Within: time.Minute, For: time.Minute, Max: time.Hour},
	}},
	{{ // requests that no route serves: 404 and 405
		Name: "unmatched", Key: address,
		Limit: algorithms.TokenBucket(60, time.Minute),
	}},
}

// perMinute is the limit of a plan. A tenth of it may come at once.
func perMinute(n int64) algorithms.Limit {
	return algorithms.TokenBucket(n, time.Minute).WithBurst(n / 10)
}

func failedLogin(status int) bool { return status == http.StatusUnauthorized }

// searchCost is 5 units for a deep search, and 1 for any other.
func searchCost(r *http.Request) int64 {
	if r.URL.Query().Get("deep") == "1" {
		return 5
	}
	return 1
}
