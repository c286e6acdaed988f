// Package ratelimit limits how often clients may call an http.Handler. Import it from the folder middleware. The
// smallest program allows each address 100 requests per minute:
//
//	perIP := ratelimit.Must(ratelimit.New(algorithms.NewMemory(nil), nil, ratelimit.Policy{
//		Name:  "per-ip",
//		Limit: algorithms.SlidingWindowCounter(100, time.Minute),
//	}))
//	http.ListenAndServe(":8080", perIP.Handler(mux)) // or, with chi, r.Use(perIP.Handler)
//
// # Where to read on
//
//	To                                        Read
//	choose an algorithm                       package algorithms
//	count together with all instances         package algorithms/shared
//	say who is counted; work behind a proxy   package keyfunc; Options.ClientIP
//	give plans their limits                   Policy.Tiers, and the example Plans
//	load limits from a database               Policy.LimitOf
//	count tokens, bytes or seconds            Policy.Cost, Settle
//	count failed logins only                  Policy.ChargeIf
//	lock out repeat offenders                 Ban
//	try a limit before it denies              Policy.Shadow, Policy.Candidate
//	let requests pass uncounted               Options.Exempt, Policy.Skip, ModeOff
//	limit one key while the service runs      package overrides; package console for HTTP
//	replace the configuration                 Middleware.Update
//	limit by the body of a request            Middleware.Deny
//	test your service                         package algorithms/limitertest
//	watch it                                  packages prommetrics and statuspage, Observer
//	see who is denied, and what is wrong      Middleware.TopDenied, Middleware.Findings
//	call a limited service                    package client
//
// # One Middleware is one decision
//
// A request is charged to all policies of a Middleware, or, if one denies, to none. Two Middlewares are two decisions:
// the outer one stays charged when the inner one denies.
//
//	Status  When
//	429     a policy denies; the key is banned; the address guesses API keys
//	503     only Capacity policies deny; no decision, and a policy fails closed; the lookup
//	        of an identity failed; the client hung up; the Middleware is closed
//	401     an identity is missing, or an API key is unknown
//	400     an identity is malformed; the value of a keyfunc.Custom is malformed or missing
//	500     a check is invalid, e.g. its cost is negative
//
// An unknown API key costs the client's address one unit of its policy's Limit. The middleware answers before it reads
// bodies, and never shows clients the text of an error.
//
// Clients of gRPC, gRPC-Web and Connect receive the error RESOURCE_EXHAUSTED with a google.rpc.RetryInfo instead of the
// status 429. gRPC's own retries obey grpc-retry-pushback-ms. For scripts in browsers, name Grpc-Status, Grpc-Message
// and Grpc-Status-Details-Bin in Access-Control-Expose-Headers.
//
// # Retry-After
//
// Retry-After is honest: after that wait the same request is admitted if no other client spends. Where many clients
// share a limit, each denied client gets an instant of its own, its slot: see Policy.Spread. Without a slot, an aligned
// window or a Hidden policy adds jitter: a tenth of the window, from 1 to 30 s.
//
// # Where to mount it
//
//   - Inside the handlers that answer CORS preflights and set CORS headers, because browsers hide other denials from
//     scripts.
//   - Inside recovery and access logs, and outside expensive work.
//   - After authentication only if a policy's key needs its result. Then put a policy by address in front of it.
//   - Anywhere in a chi router. Around an http.ServeMux, build route keys with keyfunc.RouteIn.
//   - Once per request and policy: a handler that is wrapped twice is charged twice.
//
// A HEAD counts as a GET of its route. net/http answers "OPTIONS *" before any handler; set
// http.Server.DisableGeneralOptionsHandler to limit it.
package ratelimit
