// Package replay, which a minor version may change, runs the requests of access logs through the limits of your service, in
// the requests' own time. It reports which limit is right before the limit denies a client.
//
// Your program calls [Run] with the function that builds its handler. Run passes a limiter
// of its own to that function. The report then says what each of some limits would cost, and
// proposes the smallest limit that denies few clients, as Go code.
//
// # What runs
//
// Each request of a log runs through the middlewares of the handler, up to the handlers of
// your routes, which do not run. The handler is one of these:
//
//   - A [chi.Mux]. Middlewares of others run, too. The handlers of NotFound and
//     MethodNotAllowed run, unless a Middleware is around them.
//   - An [http.ServeMux] whose patterns have handlers that Middleware.Handler returned. Any
//     other handler in a pattern does not run, even if a Middleware is inside.
//   - A handler that Middleware.Handler returned, around one of these.
//
// So build a handler without middlewares that log, authenticate, or go on in another
// goroutine, and put them around it where you serve.
//
// The user of a log line is the identity of [keyfunc.User] and [keyfunc.APIKey]: Run calls
// none of their functions. Observers receive nothing. No request is held. A handler that
// calls Middleware.Check or a limiter by itself does not run, so its calls are not replayed.
//
// # Logs
//
// Run finds out the format of each line:
//
//   - Common and Combined Log Format (Apache, nginx, Traefik), HAProxy's HTTP log, the text
//     of Envoy and Istio, AWS's Application Load Balancer, and gin.
//   - JSON objects (Caddy, Traefik, Envoy, Google's load balancers, slog, zerolog, zap, logrus,
//     echo), or key=value pairs, with fields such as time, address, user, method, path, status,
//     duration and cost (in units). A service that settles can log
//     "settled": [{"at": time, "policy": name, "units": -5}].
//   - W3C columns (CloudFront, IIS), named by a line #Fields.
//
// Prefixes of syslog and of containers, and docker's JSON around a line, do not matter. A
// line whose client is not certain is bad: one with a list of addresses, or with none. Of
// client_ip and remote_addr in one object, the first is the client. A time without a zone
// is UTC.
//
// A duration has the unit that its text, its name or its format says. Otherwise the first
// lines of a file decide. Check the median and the longest duration in the report.
//
// Files may be compressed by gzip, and may still be written: a last line without its end is
// left out. Lines may be a minute out of order. Name rotated files in any order.
//
// # The report
//
// For each limit the report has its denials: how many requests and keys, the longest wait, the
// worst minute, and who is denied. A table goes from the smallest limit that denies 5 % of the
// clients to the one that denies nobody. The format html is a page with curves.
//
// A proposal is the smallest limit that denies at most -deny-clients of the clients, and
// -headroom on top. It counts clients and not requests, because the few clients that a
// limit is for may send most of the requests. A burst keeps its proportion to the limit.
//
// There is no proposal if one address sends more than 90 % of a limit's requests, because it
// may be your proxy, or if more than 1 % of the requests have no IP address. Nor is there one
// for policies with ShareBy or After, whose decisions depend on another limit.
//
// As JSON, durations are in seconds, and shares are parts of 1. The main fields are:
//
//	requests, bad_lines, late_lines, unmatched, unlimited, refused (by status), policies
//	policies[]    policy, route, limit, results, most_denied, curve, smallest, proposal, note
//	  results[]   requests, denied, denied_share, keys, denied_keys, longest_wait, worst_minute; one, of the limit
//	  curve[]     limit, denied, denied_requests, denied_keys, denied_clients, busiest_second
//	  smallest    the smallest limit for -deny-clients
//	  proposal    limit, denied_requests, denied_clients, most_denied, code; missing if note says why
//
// # Memory
//
// The number of keys bounds the memory, and the number of lines does not. Run holds
//
//   - about 300 bytes for each key that a policy has counted, until the end;
//   - the state of limits, as an [algorithms.Memory] has it, until the last line;
//   - the lines of the last minute, to put them in order: at most 32 MB in all files
//     together. If a minute takes more, the earliest lines go on sooner;
//   - about 300 bytes for each admitted request that holds units or may return them, until
//     its end in the log: requests of a Concurrent limit, a ChargeIf or a Cost.
//
// Garbage that Go has not yet collected can double that; GOGC and GOMEMLIMIT bound it.
//
// Decisions go to a temporary file, 16 bytes each, which loses its name at once where the
// system allows that.
//
// # What a replay cannot know
//
//   - Clients that are denied behave otherwise than clients that are served: they wait,
//     retry, or leave. The replay sends what the log has.
//   - Where a log has whole seconds, the requests of one second come at one instant. A
//     burst then looks larger than it was.
//   - Which tenants of a Policy with ShareBy were present together. All tenants of the last
//     lines count as present, so shares may be smaller than they were.
//   - A request whose API key was unknown has no user in the log. The replay treats its
//     identity as missing.
package replay
