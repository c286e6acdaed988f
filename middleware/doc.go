// Package ratelimit limits how often clients may call an http.Handler. A [Policy]
// says who may do how much. [New] takes policies and a limiter, and returns a
// [Middleware] that wraps handlers of net/http, chi, or another router:
//
//	perIP := ratelimit.Must(ratelimit.New(algorithms.NewMemory(nil), nil, ratelimit.Policy{
//		Name: "api", Limit: algorithms.SlidingWindowCounter(100, time.Minute), // Key: the client's address
//	}))
//	r.Use(perIP.Handler)
//
// algorithms.Memory counts in this process. shared.New counts together with all
// instances, through Redis. The example "Plans" is a whole service.
//
// # Which answer a request gets
//
//	Status  When                                              Charged
//	(next)  every policy admits                               to all policies
//	429     a policy denies                                   to no policy
//	503     only Capacity policies deny                       to no policy
//	429     a key is banned (abnormal-usage-detected)         to no policy
//	401     an identity is missing                            to no policy
//	401     an API key is unknown                             to the client's address
//	429     the same, and the address is denied               to no policy
//	429     an API key, also a valid one, from an address     to no policy
//	        that was denied for unknown keys (ClientIP)
//	400     an identity is malformed                          to no policy
//	400     the value of a keyfunc.Custom is missing          to no policy
//	503     the lookup of an identity failed                  to no policy
//	503     no decision, and a policy fails closed            to no policy, as far as this instance knows
//	503     the Middleware is closed                          to no policy
//	503     the client hung up before the decision            perhaps; late settlements are returned
//	503     the client hung up while its request was held     to no policy: the takes are returned
//	500     an invalid check, e.g. a negative cost            to no policy
//
// A missing or malformed identity beats a ban, and a ban beats an unknown key. An
// unknown API key costs one unit of its policy's Limit. The middleware answers
// refused requests before it reads their bodies, as short application/problem+json.
// Clients never see the text of an error.
//
// All policies of one Middleware are one decision. Two Middlewares around each other
// are two decisions: the outer one stays charged when the inner one denies.
//
// # Retry-After
//
// A denial is honest: the same request would be admitted after Retry-After if no
// other client asked. But where many clients share a limit, the honest wait sends
// them all back at once, and the limit admits one. So each denied client gets an
// instant of its own, a slot:
//
//	slot = max(slot, now + wait) + cost/rate
//
// Here wait is the honest wait, and rate the limit's requests per window.
//
//   - Policy.Spread switches slots on and off. They are on by default for Hidden and
//     Capacity policies, and for keys of a constant or a route.
//   - The stored key of the first policy that counts one client identifies the client,
//     otherwise the address of Options.ClientIP. Clients behind one address share a slot
//     if no policy counts them.
//   - A client keeps its slot until the slot has passed, however often it asks.
//   - A slot is never earlier than the honest wait, and at most eight minutes later. A
//     limit whose requests come back more than four minutes apart has no slots.
//   - Each instance has its own slots, and leaves room for the other instances of its
//     limiter. It remembers 20 000 slots. Further clients get jitter.
//   - Without slots, aligned windows and hidden policies have jitter: up to a tenth of
//     the window, at least 1 s and at most 30 s, by a hash of the client.
//
// Retry-After counts whole seconds, so the clients of one second may return together.
// Give a shared limit a burst of at least the requests of one second. An attacker with
// thousands of addresses can take the next eight minutes of slots: set Spread to false
// where that is worse than clients that return together. internal/herd/RESULTS.md
// compares slots with other kinds of Retry-After.
//
// # gRPC and Connect
//
// Clients of gRPC, gRPC-Web and Connect read a bare 429 as UNAVAILABLE, and many
// retry it at once. So the middleware refuses their requests in their own terms:
//
//	Status                       Code                Wait
//	429                          RESOURCE_EXHAUSTED  of the denial
//	503 of Capacity policies     RESOURCE_EXHAUSTED  of the denial
//	503 for any other reason     UNAVAILABLE         1 to 5 s
//	401                          UNAUTHENTICATED     none
//	400                          INVALID_ARGUMENT    none
//	500                          INTERNAL            none
//
// A denial by Capacity policies is no UNAVAILABLE, because retries at once would make
// a shortage worse. The wait is a google.rpc.RetryInfo among the details of the error,
// and Retry-After in the metadata. gRPC's own retry policies obey
// grpc-retry-pushback-ms, which is -1 if waiting cannot help. The limit fields are
// metadata, too.
//
// POSTs of gRPC and gRPC-Web are known by their Content-Type. POSTs of Connect are
// known by application/connect+… or Connect-Protocol-Version, and GETs by connect=v1 in
// the query. Scripts in browsers can read gRPC-Web's answer only if
// Access-Control-Expose-Headers names Grpc-Status, Grpc-Message and
// Grpc-Status-Details-Bin.
//
// # What ChargeIf sees
//
// Policy.ChargeIf receives the status that the wrapped handler wrote. The last column
// is for a policy that counts failures, status >= 400.
//
//	Who answers                                          ChargeIf sees      Charged
//	the handler, or a middleware inside                  its status         from 400 up
//	an inner Middleware that refuses                     429, 401, ...      yes
//	net/http, for a handler that wrote nothing           200                no
//	the handler, and panics afterwards                   its status         from 400 up
//	a recovery outside, or nobody, after a panic         500                yes
//	nobody, because the client has hung up               499                yes
//	a timeout outside, and the handler wrote nothing     504                yes
//	a timeout outside, and the handler wrote too late    the written one    from 400 up
//	the handler, after it has taken over the connection  101                no
//	gin or echo, without the lines below                 200                no
//	this Middleware, which refuses the request           not called         no
//
// A timeout outside is chi's middleware.Timeout, http.TimeoutHandler, or any other
// deadline of the request's context.
//
// gin's handlers write to gin's own writer, and echo answers errors after its
// middleware has returned. Tell the middleware their status:
//
//	gin      w.WriteHeader(c.Writer.Status())        // after c.Next(), in the wrapped handler
//	echo v4  c.Error(err)                            // with the error of next(c), in a middleware inside
//	echo v5  c.Echo().HTTPErrorHandler(c, err)       // likewise
//
// # Which limit is in force
//
// The first of these: the limit of the key's override, of everyone's override, of
// Policy.LimitOf, of the identity's tier, and Policy.Limit. The modes of overrides
// always hold. Headers tell the limit in force, and the units that were used before
// a change still count.
//
//	What changes                             Use
//	one key, or all keys, while it runs      Options.Overrides, of package overrides
//	the configuration of this instance       [Middleware.Update]
//	the limit of a plan                      Policy.Tiers
//	the limit of each customer               Policy.LimitOf
//	nothing yet: a limit to be tried         Policy.Candidate, or a Shadow policy
//
// # Which requests pass uncounted
//
//	Who decides               Use
//	the configuration         Options.Exempt, by address: health checks, own jobs
//	a function of yours       Policy.Skip, by request, for one policy
//	an operator               an override with ModeOff, by key, while the service runs
//
// # Where to mount it
//
//   - Inside the handlers that answer CORS preflights and set CORS headers: browsers
//     hide a denial without them from scripts.
//   - Inside recovery and access logs; outside expensive work, such as
//     authentication against a database and the parsing of bodies.
//   - After authentication only if a policy's key needs its result. Then put a
//     coarse policy by address in front of it.
//   - Anywhere in a chi router. Around an http.ServeMux use keyfunc.RouteIn, around
//     its handlers keyfunc.Route.
//   - Once per request and policy: a handler that is wrapped twice is charged twice.
//   - A HEAD counts as a GET of its route. chi answers it with 405 unless you use
//     chi's middleware.GetHead.
//   - net/http answers OPTIONS * before any handler, and so without a limit. Set
//     http.Server.DisableGeneralOptionsHandler, and let a handler answer it.
//
// A limit whose key or cost is in the body is checked in the handler; see the
// examples of [Middleware.Deny] and [Middleware.Handler].
//
// # Which failure mode for which policy
//
//	The limit protects                      Use
//	availability, fair shares               algorithms.FailLocal (the default)
//	nothing that matters for an hour        algorithms.FailOpen
//	passwords, money, one-time codes        algorithms.FailClosed
//
// # For operators
//
//	To see or do                            Use
//	metrics, alerts, a dashboard            package prommetrics
//	the state of this instance              package statuspage
//	a key's limits; reset, grant, ban       package console
//	misconfigurations                       [Middleware.Findings], which are logged, too
//	traces                                  an [Observer]
//	the clients that are denied most        [Middleware.TopDenied]
package ratelimit
