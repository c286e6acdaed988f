// Package headers writes the header fields of a rate limiter: the RateLimit
// fields and Retry-After. It also reads such fields of other servers.
//
// A [Quota] is a policy's promise. [Dialect.Write] writes a [Response] with one
// [State] per policy.
//
// "The draft" means version 11 of draft-ietf-httpapi-ratelimit-headers, work in
// progress.
//
// # What clients read
//
// Each column is for responses with only these fields:
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
// A client that "waits" retries after that wait. One that "reads" returns the
// numbers, or NaN.
//
// # Meaning of the numbers
//
//   - q is the most units that a client can use at once.
//   - w is the time in seconds in which the rate refills q, rounded up:
//     "q=10;w=10" for a burst of 10 at 60 per minute.
//   - r is the number of units left. If the limiter admitted the request ahead of Redis (package shared, Options.Ahead), r
//     is an estimate, lowered by what all instances may admit ahead.
//   - t is the time in seconds for which r has to last: r·w <= q·t. So a client
//     that spreads r over t never exceeds the rate.
//   - A denial lists only the policies that denied. In a denial, the largest t
//     equals Retry-After. Waits are at most 14 days.
//
// # Reading
//
// [Read] takes the first of these that a response has:
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
// Of the waits, it takes Retry-After, otherwise Retry-After-Ms,
// X-Ms-Retry-After-Ms or X-Amz-Retry-After, otherwise the resets above.
// A Retry-After-Ms that rounds up to Retry-After tells the same wait more exactly,
// and counts. X-RateLimit-Reset-After and X-RateLimit-Retry-After precede
// X-RateLimit-Reset. A Retry-After or reset of one number means seconds up to
// 10^9, Unix seconds up to 10^11, and Unix milliseconds up to 10^14. A date has a form of
// RFC 9110, also with UTC or a numeric offset, the form of RFC 3339, or the
// form of JavaScript's Date.toString.
package headers
