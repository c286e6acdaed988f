// Package middleware limits how often clients may call an http.Handler.
//
// A [Policy] says who may do how much; [New] takes any number of them and a
// limiter, and returns a [Middleware] that wraps handlers of net/http, chi or
// any other router. chi's own package bears the same name, so import this one
// as
//
//	import ratelimit "github.com/penstock-go/penstock/middleware"
//
// # Which answer a request gets
//
//	Status  When                                              Charged
//	(next)  every policy admits                               to all policies
//	429     a policy denies                                   to none
//	401     an identity is missing                            to none
//	401     an API key is unknown                             to the client's address
//	429     the same, and the address has none left           to none
//	400     an identity is malformed                          to none
//	503     no decision, and a policy fails closed            to none that is known of
//	503     the Middleware is closed                          to none
//	503     the client hung up                                to none, or given back
//	500     a mistake of the program, e.g. a negative cost    to none
//
// An unknown API key costs one unit of its policy's Limit, whatever Cost and
// Tier say. Refusals are answered before the request's body is read, as short
// application/problem+json. Clients never see the text of an error.
//
// # Where to mount it
//
//   - Inside of what answers CORS preflights and sets CORS headers: browsers
//     hide a denial without them from scripts.
//   - Inside of recovery and access logs, outside of what costs something:
//     authentication against a database, parsing of bodies.
//   - After authentication only if a policy's key or tier needs its result.
//     Then put a coarse policy by IP in front of it.
//   - Anywhere in a chi router. Around an http.ServeMux use keyfunc.RouteIn,
//     around its handlers keyfunc.Route.
//   - Once per request and policy: a handler that is wrapped twice is charged
//     twice.
//
// # Which failure mode for which policy
//
//	The limit protects                      Use
//	availability, fair shares               FailLocal (the default)
//	nothing that matters for an hour        FailOpen
//	passwords, money, one-time codes        FailClosed
//
// # What an operator sees
//
//	For                             Use
//	metrics, alerts, a dashboard    Options.Observer, of package prommetrics
//	traces                          Options.Observer, Verdict.Outcome
//	who is denied most              Middleware.TopDenied
//	Redis goes and returns          LogEvents
//	who is denied just now          Options.Logger at the debug level
package middleware
