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
//	give plans their limits              Policy.Tiers; prommetrics/example_plans_test.go
//	count tokens, bytes or seconds       Policy.Cost, Settle
//	count failed logins                  Policy.ChargeIf
//	let addresses, requests or keys pass Options.Exempt, Policy.Skip, ModeOff
//	limit one key at run time            overrides, console; Middleware.InForce
//	limit by the body of a request       Middleware.Deny
//	show customers their quota           quota
//	limit what is no http.Request        calls
//	test your service                    algorithms/limitertest
//	watch it                             prommetrics, otelmetrics, statuspage, Observer
//	call a limited service               client; without HTTP: algorithms.Wait
//	start and stop                       shared.Limiter.Ready, Middleware.Close
//
// RECIPES.md, at the top of the module, has whole programs, the lines for each framework, and where to mount the
// Middleware.
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
// with a google.rpc.RetryInfo for 429, and PERMISSION_DENIED for 403. Clients of JSON-RPC ("An MCP server" in
// RECIPES.md) receive a JSON-RPC error with the HTTP status as its code, the id null, and the wait in message and
// data.retryAfterMs.
//
// # Retry-After
//
// After the wait of Retry-After, the same request is admitted if no other client and no other worker of this one
// spends, with six exceptions:
//
//   - If a key counts one client, its first denial has the true wait. Until that wait ends, each further denial has
//     the limit's next free instant, at most 30 s later, so the workers of one account return one after the other.
//     Denials of Hidden policies, and of limits with less than a unit in 30 s, always have the true wait.
//   - Clients share the limits of Capacity policies, and of keys with only constants and routes. Each denied one has
//     a slot of its own, 1/rate after the one before and at most eight minutes late.
//   - An aligned window adds up to a tenth of itself, from 1 to 30 s, so that its clients do not all return at once.
//   - The wait of a Concurrent limit is the median duration of its last sixteen requests in this process.
//   - A denial that begins a ban still has the wait of the limit. The next one has the wait of the ban.
//   - The look-up of a new API key may wait: see SECURITY.md.
package ratelimit
