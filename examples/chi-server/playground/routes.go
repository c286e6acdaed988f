// The requests that the page can send, and the accounts that send them.

package playground

import (
	"context"
	"net/http"

	"github.com/penstock-go/penstock/keyfunc"
)

// Cost is the cost of the page's own requests. A comparison makes thousands of
// decisions.
func Cost(r *http.Request) int64 {
	if r.URL.Path == "/demo/compare" {
		return 20
	}
	return 1
}

// A Route is a request to the API that the page can send.
type Route struct {
	Title  string `json:"title"`
	Method string `json:"method"`
	Path   string `json:"path"`
	Body   string `json:"body,omitempty"`
	Key    bool   `json:"needs_key"` // an API key
	Policy string `json:"policy"`
	Limit  string `json:"limit"` // as algorithms.ParseLimit reads it
	Note   string `json:"note"`
}

// Routes are in the order of the page.
var Routes = []Route{
	{
		Title: "Get an order", Method: http.MethodGet, Path: "/v1/orders/1",
		Policy: "orders", Limit: "token-bucket 60/1m burst 10",
		Note: "10 at once, then 1 per second.",
	},
	{
		Title: "Search", Method: http.MethodGet, Path: "/v1/search?q=water",
		Policy: "search", Limit: "sliding-window-counter 30/1m",
		Note: "About 30 in any minute.",
	},
	{
		Title: "Deep search", Method: http.MethodGet, Path: "/v1/search?q=water&deep=1",
		Policy: "search", Limit: "sliding-window-counter 30/1m",
		Note: "Costs 5 of the same 30.",
	},
	{
		Title: "List reports", Method: http.MethodGet, Path: "/v1/reports",
		Policy: "reports", Limit: "fixed-window 20/1m",
		Note: "20 per minute of the clock.",
	},
	{
		Title: "Log in, wrong password", Method: http.MethodPost, Path: "/v1/login", Body: `{"user":"demo","password":"guess"}`,
		Policy: "login", Limit: "sliding-window-log 5/1m",
		Note: "5 failed logins in any minute, by address. The application answers 401 until then, the limiter 429 after that. Without Redis the limiter answers 503.",
	},
	{
		Title: "Log in", Method: http.MethodPost, Path: "/v1/login", Body: `{"user":"demo","password":"demo"}`,
		Policy: "login", Limit: "sliding-window-log 5/1m",
		Note: "Successful logins do not count.",
	},
	{
		Title: "Send a text message", Method: http.MethodPost, Path: "/v1/sms",
		Policy: "sms", Limit: "leaky-bucket 2/1s burst 5",
		Note: "A queue of 5. The server serves one each half second, so answers come late, and evenly.",
	},
	{
		Title: "Create a charge", Method: http.MethodPost, Path: "/v1/charges", Key: true,
		Policy: "charges-merchant", Limit: "token-bucket 100/1m burst 10",
		Note: "Needs an API key. Its plan allows 100, 1000 or 5000 a minute. A second limit protects the capacity for all merchants. The headers do not mention it.",
	},
	{
		Title: "Generate text", Method: http.MethodPost, Path: "/v1/completions", Body: `{"max_tokens":2000}`, Key: true,
		Policy: "completions", Limit: "token-bucket 10000/1m",
		Note: "Needs an API key. The limiter reserves 500 tokens, and the server settles 1500 while it serves.",
	},
}

// accounts are the accounts of the demonstration, by their API keys.
var accounts = map[string]keyfunc.Identity{
	"demo-free":       {ID: "merchant-1", Tier: "free"},
	"demo-pro":        {ID: "merchant-2", Tier: "pro"},
	"demo-enterprise": {ID: "merchant-3", Tier: "enterprise"},
}

// Names are the accounts whose denials have series of their own, by their keys, under names
// that all who read the metrics may see.
var Names = map[string]string{"usr=merchant-1": "acme", "usr=merchant-2": "globex", "usr=merchant-3": "initech"}

// Lookup returns the account of an API key. A service would ask its database,
// through a bounded cache that also remembers unknown keys.
func Lookup(_ context.Context, apiKey string) (keyfunc.Identity, error) {
	identity, ok := accounts[apiKey]
	if !ok {
		return keyfunc.Identity{}, keyfunc.ErrUnknown
	}
	return identity, nil
}

// Tiers returns the tiers of the accounts, by their IDs.
func Tiers() map[string]string {
	tiers := make(map[string]string)
	for _, account := range accounts {
		tiers[account.ID] = account.Tier
	}
	return tiers
}
