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
//	503     policies of Capacity deny, and no other           to none
//	429     a key is banned (abnormal-usage-detected)         to none
//	401     an identity is missing                            to none
//	401     an API key is unknown                             to the client's address
//	429     the same, and the address has none left           to none
//	400     an identity is malformed                          to none
//	503     no decision, and a policy fails closed            to none that is known of
//	503     the Middleware is closed                          to none
//	503     the client hung up before it was decided          perhaps; what is settled late is given back
//	503     the client hung up while it was held              to none: it is given back
//	500     a mistake of the program, e.g. a negative cost    to none
//
// An unknown API key costs one unit of its policy's Limit, whatever Cost and
// Tier say. Refusals are answered before the request's body is read, as short
// application/problem+json. Clients never see the text of an error.
//
// A missing or malformed identity beats a ban, which beats an unknown key.
//
// # Change limits while it runs
//
//	What changes                          Use                   In force
//	one key, for a while or for good;     Options.Overrides     in a second, on all instances
//	all keys of a policy; all policies
//	the configuration                     [Middleware.Update]   at once, on this instance
//	what a client is entitled to          Policy.Tiers          with the next request
//	nothing yet: it is to be tried        Policy.Candidate      never
//
// The limit in force is, in this order, that of the key's override, that of
// everyone's, the tier's, the policy's; an override that replaces the limit
// leaves tiers aside, and no candidate runs beside it. Headers tell the limit in
// force, and what was used before counts on. A [Console] shows all this for a
// key, and forgets, gives back, bans and lifts bans.
//
// An override that is Off leaves the policy out for its keys, and one in Shadow
// lets it deny nothing, also where it would fail closed. If that is so for
// everyone, requests need no key for it, and an identity that is missing,
// malformed or unknown passes: limits
// are no substitute for authentication. A ban is denied without asking any
// policy; a policy that is a Shadow cannot ban.
//
// Do not override what is no exception: a hundred equal overrides are a tier. Do
// not Update for single keys: policies should read like the contract. Do not
// grant or reset to help a client whose limit is too small. And what must hold
// without Redis ever having answered belongs in the policies.
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
//	what happens here, on a page    NewStatus
//	mistakes in the set-up          Middleware.Findings, which are logged, too
//	traces                          Options.Observer, Verdict.Outcome
//	who is denied most              Middleware.TopDenied
//	Redis goes and returns          shared.Options.Logger
//	who is denied just now          Options.Logger at the debug level
package middleware
