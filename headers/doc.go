// Package headers writes the responses of a rate limiter: the RateLimit fields,
// Retry-After, and the body of a denial. It also reads the fields of other servers'
// responses.
//
// The middleware uses this package. A handler that answers denials itself can
// use it, too. Package client reads with it. The package takes plain values, imports
// the standard library only, and reads no clock.
//
//	q, err := headers.NewQuota(headers.QuotaConfig{
//		Name: "default", Limit: 100, Requests: 100, Window: time.Minute, Continuous: true,
//	})
//
// A [Quota] is a policy's promise. Make it once, when the program starts. A
// [State] is one policy's part of one response. A [Response] holds all States of
// one response, and [Dialect.Write] writes them into its header. [SetProblem]
// and [Problem] make the body of a denial.
//
// # Dialects
//
//	Constant        text         fields
//	Draft           draft        RateLimit, RateLimit-Policy
//	SeparateFields  separate     RateLimit-Limit/-Remaining/-Reset, RateLimit-Policy
//	XRateLimit      x-ratelimit  X-RateLimit-Limit/-Remaining/-Reset
//
// The zero Dialect means Draft and SeparateFields. Every Dialect includes
// Retry-After.
//
// Draft follows version 11 of draft-ietf-httpapi-ratelimit-headers (work in
// progress) and may change with it. "The draft" means this version everywhere in
// this package. RateLimit-Policy has this syntax in every Dialect that sends it.
//
// # What clients read
//
// Each row is a client that is configured to retry, if it can. The second column says
// what it makes of Retry-After alone. The others say what it makes of the fields of a
// Dialect alone.
//
//	Client                          Retry-After  Draft  SeparateFields  both (default)  XRateLimit
//	axios-retry                     waits        -      -               -               -
//	axios-retry, exponentialDelay   waits        -      -               -               -
//	got                             waits        -      -               -               -
//	ky                              waits        -      waits           waits           waits
//	octokit plugin-retry            -            -      -               -               -
//	octokit plugin-throttling       -            -      -               -               waits
//	p-retry                         -            -      -               -               -
//	ratelimit-header-parser         -            NaN    reads           NaN             reads
//	urllib3 Retry, with requests    waits        -      -               -               -
//	httpx                           -            -      -               -               -
//	go-retryablehttp                waits        -      -               -               -
//
// The words mean:
//
//   - waits: it retries after the wait that the response names.
//   - reads: it does not retry, and returns the numbers to its caller.
//   - NaN: it returns NaN instead of numbers.
//   - "-": it ignores them. It does not retry, or retries after a time of its own.
//
// octokit's plugin-throttling waits for XRateLimit only. ratelimit-header-parser
// reads RateLimit as version 07 of the draft, so do not send it Draft.
//
// make test-clients runs these clients against a server and compares the table. The
// files of internal/clients name their versions.
//
// # Meaning of the numbers
//
//   - q is the most units that a client can use at once.
//   - w is the time in seconds in which the rate refills q, rounded up. A bucket
//     of 60 per minute with a burst of 10 has "q=10;w=10".
//   - r is the number of units left.
//   - t is the time in seconds for which r has to last. Because r·w <= q·t
//     always, a client that spreads r over t never exceeds the policy's rate.
//     Just before a window ends, t therefore exceeds the rest of the window.
//   - A denial lists only the policies that denied. Their t is their own wait, so
//     Retry-After never points before the end of a t.
//   - RateLimit-Reset is in seconds from now, X-RateLimit-Reset in Unix seconds.
//     Both are rounded up.
//   - Retry-After is at most 14 days. So are t and the resets of a denial, and
//     beside 0 units left. The limiter denies a client that returns then, but
//     needs a longer wait, again. The timers of many clients overflow at 24.8
//     days. A t beside more units is no wait and has no such bound.
//
// # Duties of the server
//
//   - Call Write before the response begins. The draft forbids these fields in
//     trailers. A handler that hijacks the connection drops them.
//   - Name the fields in Access-Control-Expose-Headers if scripts in browsers
//     shall read them. [Dialect.ExposeHeaders] lists the names.
//   - Put CORS middleware outside the limiter, because denials need its fields.
//   - Expect caches to replay the fields of cacheable responses. The draft asks
//     clients to ignore the fields of a response with a positive Age.
//     [SetProblem] makes denials uncacheable.
//
// # Reading
//
// A [Reader] reads the fields of a response. A lenient Reader knows these dialects. It
// takes the first that the response has:
//
//	Fields                                    Defined by              Example
//	RateLimit, RateLimit-Policy               draft 08 to 11          "default";r=50;t=30
//	the same, with a and w for r and t        the draft's next text   "default";a=50;w=30
//	RateLimit                                 draft 07                limit=100, remaining=50, reset=5
//	RateLimit-Limit, -Remaining, -Reset       draft 00 to 06          100, 50, 5
//	X-RateLimit-Limit, -Remaining, -Reset     GitHub and many others  100, 50, 1795262405
//	X-Rate-Limit-Limit, -Remaining, -Reset    X (Twitter)             100, 50, 1795262405
//	X-RateLimit-Limit-Requests, -Tokens, ...  OpenAI, Groq            100, 50, 6m0s
//	Anthropic-RateLimit-Requests-Limit, ...   Anthropic               100, 50, 2026-11-21T12:01:00Z
//
// Of the waits, it takes Retry-After, otherwise the milliseconds of Azure and AWS
// (Retry-After-Ms, X-Ms-Retry-After-Ms, X-Amz-Retry-After), otherwise the resets above.
// X-RateLimit-Reset-After and X-RateLimit-Retry-After precede X-RateLimit-Reset.
//
// Nothing states the meaning of a reset of one number, so its size decides: seconds up
// to 10^9, Unix seconds up to 10^11, Unix milliseconds up to 10^14. A Reader cannot see
// that a server means milliseconds from now.
package headers
