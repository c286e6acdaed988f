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
//	choose an algorithm                  algorithms
//	count in all instances               algorithms/shared
//	say who is counted; behind a proxy   keyfunc; Options.ClientIP
//	give plans their limits              Policy.Tiers, prommetrics/example_plans_test.go; Policy.LimitOf
//	count tokens, bytes or seconds       Policy.Cost, Settle
//	count failed logins; ban clients     Policy.ChargeIf, Ban
//	try a limit before it denies         Policy.Shadow, Policy.Candidate
//	let addresses, requests or keys pass Options.Exempt, Policy.Skip, ModeOff
//	limit one key at run time            overrides, console; Middleware.InForce
//	replace the configuration            Middleware.Update
//	answer refusals yourself             Options.Refused, Refuse
//	limit by the body of a request       Middleware.Deny
//	show customers their quota           quota
//	limit what is no http.Request        calls
//	test your service                    algorithms/limitertest
//	watch it                             prommetrics, statuspage, Observer, Middleware.TopDenied
//	call a limited service               client; without HTTP: algorithms.Wait
//	start and stop                       shared.Limiter.Ready, Middleware.Close
//
// pkg.go.dev shows the Examples, which go doc does not print. RECIPES.md, at the top of the module, has whole programs,
// the lines for each framework, and where to mount the Middleware ("Stacks").
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
// A request with an unknown API key is charged to the policies that count one client without the key, such as by
// address. Clients never see the text of an error.
//
// A refusal is an application/problem+json. Clients of gRPC, gRPC-Web and Connect instead receive RESOURCE_EXHAUSTED
// with a google.rpc.RetryInfo for 429, and PERMISSION_DENIED for 403. Clients of JSON-RPC, such as agents that speak MCP,
// receive a JSON-RPC error: its code is the HTTP status, its id is null, and its message and data.retryAfterMs have the
// wait. They POST application/json-rpc, or application/json with MCP-Protocol-Version or Mcp-Session-Id.
//
// # Retry-After
//
// After the wait of Retry-After, the same request is admitted if no other client and no other worker of this one
// spends. There are six exceptions:
//
//   - If a key counts one client, its first denial has the true wait. Until then, each further denial has the limit's
//     next free instant, as long after the one before as its own cost takes, and at most 30 s after the true wait. So
//     the workers of one account return one after the other. A client that has its key for itself and waits as told
//     always has the true wait, and so have all denials of a Hidden policy, and of a limit with less than a unit in
//     30 s.
//   - Clients that share a limit get slots: each denied client has a wait of its own, 1/rate after the one before and at
//     most eight minutes late. They share the limits of Capacity policies, and of keys with only constants and routes.
//   - An aligned window adds up to a tenth of itself, from 1 to 30 s, so that its clients do not all return at once.
//   - The wait of a Concurrent limit is the median of how long its last sixteen requests took in this process.
//   - A denial that begins a ban still has the wait of the limit. The next one has the wait of the ban.
//   - A new API key from an address that sends many unknown ones shares ten look-ups per second with them.
package ratelimit
