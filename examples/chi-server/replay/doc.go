// Package replay runs the requests of access logs through rate limits, in the requests'
// own time. It tells which limit is right before the limit denies any client.
//
//	log files ─► source (parse, order) ─► Engine (the real middleware) ─► tally ─► report
//	                                          └─► spool ─► trials (other limits) ─► search
//
// The [Engine] decides each request once, with the middlewares and the algorithms of a
// server and a clock that stands at the request's instant. It also writes each decision
// to a spool, a temporary file of 16 bytes per decision or settlement. Trials read the
// spool, and decide by other algorithms and other limits. So the number of keys bounds the
// memory, and the number of lines does not.
//
// # Files
//
// Logs have Common or Combined Log Format, or one JSON object on each line, with fields
// such as time, address, user, method, path, status, duration and cost. They may be
// compressed by gzip. Lines may be a minute out of order, and files may overlap.
//
// A service other than the example describes itself in three files:
//
//	-routes    one route on each line: GET /v1/orders/{id}
//	-policies  [{"name": "orders", "key": ["user", "address"], "per_route": true, "limit": "60/1m burst 10",
//	             "routes": ["GET /v1/orders/{id}"], "plans": {"pro": "600/1m"}, "costs": {"GET /v1/orders/{id}": 2},
//	             "charge_if": [401], "fail": "closed", "capacity": false, "shadow": false, "candidate": "90/1m"}]
//	-plans     one user on each line: merchant-7 pro
//
// A policy needs a name and a limit. Without routes it counts every request, and the
// route "unmatched" stands for requests that no route serves. The key is the first that a
// request has; "all" counts all clients together, and the default is the address.
//
// # Proposals
//
// A proposal is the smallest limit that denies at most -deny-clients of the clients, and
// -headroom on top. It counts clients and not requests, because the few clients that a
// limit is for may send most of the requests. A burst keeps its proportion to the limit.
//
// # What a replay cannot know
//
//   - Clients that are denied behave otherwise than clients that are served: they wait,
//     retry, or leave. The replay sends what the log has.
//   - Where a log has whole seconds, the requests of one second come at one instant. A
//     burst then looks larger than it was.
//   - A request whose API key was unknown has no user in the log. The replay treats its
//     identity as missing.
package replay
