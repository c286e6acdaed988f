// Package headers writes what a rate limiter tells its clients: the RateLimit
// fields, Retry-After, and the body of a denial.
//
// Middleware uses it, and so does a handler that answers denials itself. It
// takes plain values, imports the standard library only, and reads no clock.
//
//	q, err := headers.NewQuota(headers.QuotaConfig{
//		Name: "default", Limit: 100, Requests: 100, Window: time.Minute, Continuous: true,
//	})
//
// A [Quota] is what a policy promises, made once. A [State] is what it says
// about one response, a [Response] all that is said about one, and
// [Dialect.Write] writes that down.
//
// # Dialects
//
//	Dialect  fields                                who reads them
//	Draft    RateLimit, RateLimit-Policy           few yet, such as Cloudflare's SDKs
//	Triple   RateLimit-Limit/-Remaining/-Reset,    clients of the drafts up to -06, such as
//	         RateLimit-Policy                      ky and ratelimit-header-parser (JavaScript)
//	X        X-RateLimit-Limit/-Remaining/-Reset   clients written for GitHub's fields, such as
//	                                               octokit (JavaScript)
//
// The zero Dialect means Draft and Triple. Retry-After belongs to all of them:
// nearly every client that retries reads it, and few read anything else.
//
// Draft implements the syntax of draft-ietf-httpapi-ratelimit-headers-11 (work
// in progress), and so may change with it; it is what "draft" means in this
// package. RateLimit-Policy is in that syntax in every dialect that has it.
//
// # What the numbers mean
//
//   - q is what a client may use at once, and w the seconds in which the rate
//     brings that back, rounded up: 60 per minute with a burst of 10 is
//     "q=10;w=10".
//   - r is what is left, t the seconds for which it has to last. Since r·w <= q·t
//     always, a client that spreads r over t never exceeds the policy's rate.
//     Just before a window ends, t therefore looks beyond its end.
//   - On a denial only the policies that denied are listed, and t is their part
//     of Retry-After, so that Retry-After never points before the end of a t.
//   - RateLimit-Reset is in seconds from now, X-RateLimit-Reset in seconds of
//     the Unix epoch. Both are rounded up.
//
// # What the rest of the server has to do
//
//   - Write before the response begins. The fields must not be trailers; a
//     handler that hijacks the connection drops them.
//   - Browsers show a script these fields only if the response names them in
//     Access-Control-Expose-Headers; [Dialect.ExposeHeaders] lists them. A
//     denial needs its CORS fields too, so CORS goes outside the limiter.
//   - Caches replay fields of cacheable responses, and clients are told to
//     ignore them when Age is above 0. Denials are never stored.
package headers
