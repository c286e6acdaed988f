// Package headers writes the header fields of a rate limiter: the RateLimit fields and Retry-After. It also reads
// such fields of other servers.
//
// [Dialect.Write] writes a [Response]. "The draft" is version 11 of draft-ietf-httpapi-ratelimit-headers. "Fields for
// clients" in RECIPES.md says what clients read.
//
// # Meaning of the numbers
//
//   - q is the most units that a client can use at once.
//   - w is the time in seconds in which the rate refills q, rounded up: "q=10;w=10" for a burst of 10 at 60 per
//     minute.
//   - r is the number of units left. With Options.Ahead of package shared it is an estimate.
//   - t is the time in seconds for which r has to last: r·w <= q·t. So a client that spreads r over t never exceeds
//     the rate.
//   - In a denial, the largest t equals Retry-After.
package headers
