// Package algorithms decides whether requests may proceed.
//
// A [Limit] says how much, a [Limiter] decides. Limits travel with every call,
// so plans, overrides and reloads need no other limiter:
//
//	limiter := algorithms.NewMemory(nil)
//	d, err := algorithms.Allow(ctx, limiter, "usr=42", algorithms.TokenBucket(60, time.Minute))
//
// # Which limit
//
//	Limit                 Admits                                     State     For
//	TokenBucket           a burst, then the rate: any window may     O(1)      APIs; the default
//	                      see burst + requests
//	LeakyBucket           the same, and says when to serve each,     O(1)      work that must not come
//	                      evenly spaced                                        in bursts
//	SlidingWindowCounter  about requests in any window               O(1)      quotas over windows
//	SlidingWindowLog      exactly requests in any window             O(n)      logins, payments
//	FixedWindow           requests per window of the clock, twice    O(1)      quotas that users see
//	                      that around its turn                                 reset
//	PerDay, PerMonth      requests per day or month of a time zone   O(1)      plans, invoices
//	Concurrent            n requests at a time                       O(n)      slow requests, streams
//	Nobody                nothing                                    none      switching off
//
// # Which limiter
//
//	Limiter         Counts                                  Costs
//	Memory          within this process                     a lock
//	shared.Limiter  together with all processes that use    one script, one round trip, for any
//	                the same Redis and prefix               number of limits
//
// This package needs only the standard library. Package shared, below it, needs
// a Redis and its client.
//
// # Several limits, one decision
//
// [Limiter.Allow] takes any number of checks, of any algorithms, and charges all
// of them or none:
//
//	checks := []algorithms.Check{
//		{Policy: "merchant", Key: "usr=" + merchant, Limit: perMerchant, Cost: 1},
//		{Policy: "global", Key: "const=all", Limit: global, Cost: 1},
//	}
//	err := limiter.Allow(ctx, checks)
//	if err == nil && algorithms.Allowed(checks) { ... }
//
// # What is exact
//
// All arithmetic is on integers: units and microseconds. Remaining is what can
// be taken now. RetryAfter is the first microsecond at which the same call is
// admitted if nobody else spends. A client that waits it is admitted at its
// second try, also after the clock has stepped. Memory and Redis give the same
// figures, by the same functions, from the same integers.
//
// The sliding window counter is exact by its definition, and its definition is
// an approximation of the log: it takes the previous window's requests as
// evenly spread.
//
// # What happens to a key
//
//	A limit is raised                  the added units can be used at once
//	A limit is lowered                 used units still count, up to twice the new burst
//	The rate of a bucket changes       the new rate counts from the last take on
//	The algorithm changes              a key of its own: it starts full
//	The clock steps back over 100 ms   states move to the new now, with their used units
//	It is Reset                        it starts full; receipts from before give nothing back
//	The state does not parse           it counts as absent, and the next charge heals it
//	The key is of another Redis type   an error; it is never written or deleted
//	It is full again                   it expires: every key in Redis has a TTL
//
// These rules have bounded exceptions:
//
//   - A raised rate may count for up to 10 ms before the last take.
//   - If at most a 16th of the burst was in use, a raised rate counts for the time
//     since the last unit drained. It adds at most that 16th.
//   - In every other case a raise adds less than one unit.
//   - A charge under a lowered limit cuts the stored units to twice the lower burst.
//     So a Force there may forget units of the higher limit.
//   - A change of a bucket's rate voids all receipts except the receipt of the latest
//     take.
//   - If the rate then changes back, a receipt from before may credit units of other
//     takes, at most its own number. Where one rate is k times the other, this happens to
//     1 receipt in k: for 10 % after a change from 1/1s to 10/1s and back. Between other
//     rates it is rarer. It cannot happen once a receipt was returned out of order, until
//     the bucket is full again.
//
// Redis stores keys as prefix:{first}|rest:policy:tag; see [Check] for the parts.
package algorithms
