// Package ratelimit limits how often clients may call an http.Handler. The smallest program allows each address 100
// requests per minute:
//
//	perIP := ratelimit.Must(ratelimit.New(algorithms.NewMemory(nil), nil, ratelimit.Policy{
//		Name:  "per-ip",
//		Limit: algorithms.SlidingWindowCounter(100, time.Minute),
//	}))
//	http.ListenAndServe(":8080", perIP.Handler(mux)) // or, with chi, r.Use(perIP.Handler)
//
// # Where to read on
//
//	choose an algorithm                       algorithms
//	count in all instances                    algorithms/shared
//	say who is counted; behind a proxy        keyfunc; Options.ClientIP
//	give plans their limits                   Policy.Tiers, prommetrics/example_plans_test.go
//	load limits from a database               Policy.LimitOf
//	count tokens, bytes or seconds            Policy.Cost, Settle
//	count failed logins only                  Policy.ChargeIf
//	lock out repeat offenders                 Ban
//	try a limit before it denies              Policy.Shadow, Policy.Candidate
//	let addresses, requests or keys pass      Options.Exempt, Policy.Skip, ModeOff
//	limit one key at run time                 overrides, console
//	know which limit holds for a key, and why Middleware.InForce
//	replace the configuration                 Middleware.Update
//	answer, or log, refusals yourself         Options.Refused, Refuse
//	limit by the body of a request            Middleware.Deny
//	show customers their quota                quota
//	limit what is no http.Request             calls
//	test your service                         algorithms/limitertest
//	watch it                                  prommetrics, statuspage, Observer
//	see denied clients and misconfigurations  Middleware.TopDenied, Middleware.Findings
//	call a limited service                    client; without HTTP: algorithms.Wait
//	start and stop                            shared.Limiter.Ready, Middleware.Close
//
// Examples are in the files example*_test.go of this folder, and on pkg.go.dev; go doc prints none, and
// go list -f {{.Dir}} github.com/penstock-go/penstock/middleware prints the folder. RECIPES.md, at the top
// of the module, has whole programs, and the lines for each framework.
//
// # One Middleware is one decision
//
// A request is charged to all policies of a Middleware, or to none if one denies. Two Middlewares are two decisions:
// the outer one stays charged when the inner one denies.
//
//	Status  When
//	429     a policy denies; the key is banned for a time; the address sends many unknown API keys
//	403     the limit Nobody denies, except of a Capacity policy, or the ban has no end: no wait helps
//	503     only Capacity policies deny; no decision, and a policy fails closed; the lookup
//	        of an identity failed; the client hung up; the Middleware is closed
//	401     an identity is missing, or an API key is unknown
//	400     an identity is malformed; a keyfunc.Custom is malformed or missing: the body says which
//	500     a check is invalid, e.g. its cost is negative
//
// A request with an unknown API key is charged to the policies that count one client without the key, such as by address. Besides,
// an address may send 20 different unknown keys per minute to each instance; Options.ClientIP has more. Clients never see the text
// of an error.
//
// Clients of gRPC, gRPC-Web and Connect receive RESOURCE_EXHAUSTED with a google.rpc.RetryInfo instead of 429, and
// PERMISSION_DENIED instead of 403. Browsers need Grpc-Status, Grpc-Message and Grpc-Status-Details-Bin in Access-Control-Expose-Headers.
//
// Clients of JSON-RPC, such as agents that speak MCP, receive a JSON-RPC error. Its code is the HTTP status, because MCP has no
// code for limits and reserves -32020 to -32099 for codes of its own. Its message says the wait in words, and its
// data.retryAfterMs in milliseconds. Its id is null, because the middleware does not read the body. A request is JSON-RPC if
// it POSTs application/json-rpc, or application/json with MCP-Protocol-Version or Mcp-Session-Id. A denial of other
// JSON is an application/problem+json.
//
// # Retry-After
//
// Retry-After has whole seconds. A client of a limit of several units per second loses what comes back in the rest of a second, unless
// Options.Headers has headers.Milliseconds and the client reads Retry-After-Ms.
//
// After the wait of Retry-After, the same request is admitted if no other client and no other worker of this one spends.
// There are six exceptions:
//
//   - The first denial of a key that counts one client has the true wait. Until then, each further denial of the key has
//     the next free instant of the limit: one unit's time, of its own cost, after the one before, and at most 30 s after
//     the true wait. So the workers of one account return one after the other. A client that has its key for itself and
//     waits as told always has the true wait. A client that ignores its wait delays only other clients of its key. All
//     denials of a Hidden policy, and of a limit with less than a unit in 30 s, have the true wait. In a sliding window nobody
//     waits until later than the full limit is back. Instances that share a limiter keep these instants in it, under the
//     policy's name and "~line". There a denial asks the limiter once more, and the first of a key twice more. While the
//     limiter cannot answer, and for waits above 16 minutes, each instance has instants of its own.
//   - Clients that share a limit get slots: each denied client gets a wait of its own, 1/rate after the one before and at
//     most eight minutes late. Clients share the limits of Capacity policies, and of keys that have only constants and
//     routes.
//   - An aligned window adds jitter: up to a tenth of the window, from 1 to 30 s. So its clients do not all return at its
//     end.
//   - A Concurrent limit cannot know when a running request ends. Its wait is the median of how long the policy's last
//     sixteen requests took in this process.
//   - A denial that begins a ban has the wait of the limit, because denials are counted after the decision. The next
//     denial has the wait of the ban.
//   - A new API key from an address that sends many unknown ones shares ten look-ups per second with them.
//
// # Where to mount it
//
//   - Inside the handlers of CORS, because browsers hide denials without CORS headers from scripts. To let scripts of
//     another origin read the fields, expose headers.Dialect.ExposeHeaders.
//   - Inside recovery and access logs, and outside expensive work.
//   - After authentication only if a policy's key needs its result. Then put a policy by address before it.
//   - In fiber, use rate limits only: its adaptor returns before the handler runs.
package ratelimit
