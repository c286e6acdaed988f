// Package headers writes the header fields of a rate limiter: the RateLimit fields and Retry-After. It also reads such
// fields of other servers.
//
// A [Quota] is a policy's promise. [Dialect.Write] writes a [Response] with one [State] per policy. "The draft" means
// version 11 of draft-ietf-httpapi-ratelimit-headers, work in progress. RECIPES.md has a table of what clients read
// ("Fields for clients").
//
// # Meaning of the numbers
//
//   - q is the most units that a client can use at once.
//   - w is the time in seconds in which the rate refills q, rounded up: "q=10;w=10" for a burst of 10 at 60 per minute.
//   - r is the number of units left, an estimate with Options.Ahead of package shared.
//   - t is the time in seconds for which r has to last: r·w <= q·t. So a client that spreads r over t never exceeds the
//     rate.
//   - A denial lists only the policies that denied. In a denial, the largest t equals Retry-After. Waits are at most 14
//     days.
//
// # Reading
//
// [Read] takes the first of these that a response has:
//
//	RateLimit, RateLimit-Policy                         drafts 08 to 11, and the next text's a and w
//	RateLimit: limit=100, remaining=50, reset=5         draft 07
//	RateLimit-Limit, -Remaining, -Reset                 drafts 00 to 06
//	X-RateLimit- or X-Rate-Limit-, the same             GitHub, X and others
//	X-RateLimit-Limit-Requests, -Tokens, ...            OpenAI, Groq
//	Anthropic-RateLimit-Requests-Limit, ...             Anthropic
//
// It takes the wait of Retry-After, otherwise of Retry-After-Ms, X-Ms-Retry-After-Ms or X-Amz-Retry-After, otherwise a
// reset, of which X-RateLimit-Reset-After and X-RateLimit-Retry-After come first. A Retry-After-Ms that rounds up to
// Retry-After counts, because it is more exact. A number means seconds up to 10^9, Unix seconds up to 10^11, and Unix
// milliseconds up to 10^14. A date has a form of RFC 9110, also with UTC or a numeric offset, of RFC 3339, or of
// JavaScript's Date.toString.
package headers
