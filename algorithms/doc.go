// Package algorithms decides whether requests may proceed. A [Limit] says how much, and a [Limiter] decides. The limit
// travels with every call:
//
//	limiter := algorithms.NewMemory(nil)
//	d, err := algorithms.Allow(ctx, limiter, "usr=42", algorithms.TokenBucket(60, time.Minute))
//
// # Which limit
//
//	You want                                     Use                   State per key
//	100 a minute on average, and bursts          TokenBucket           O(1)
//	the same, served evenly spaced               LeakyBucket           O(1)
//	about 100 in every minute                    SlidingWindowCounter  O(1)
//	100 in every minute, and never more          SlidingWindowLog      O(requests)
//	100 in each minute of the clock              FixedWindow           O(1)
//	a quota per calendar day or month            PerDay, PerMonth      O(1)
//	100 requests at a time                       Concurrent            O(n)
//	no requests                                  Nobody                none
//
// [Memory] counts in this process, and shared.Limiter with all instances, through Redis.
//
// # Several limits, one decision
//
// [Limiter.Allow] charges all takes of a call or none: see the package example.
//
// # What happens to a key
//
//	Its limit is raised                the added units can be used at once
//	Its limit is lowered               used units still count, up to twice the new burst
//	The rate of its bucket changes     the new rate counts from the last take
//	Its algorithm changes              a new key, which starts full
//	The clock steps back over 100 ms   the state moves to the new now and keeps its used units
//	Its state does not parse           it counts as absent, and the next charge replaces it
//	Redis holds another type there     an error; penstock never writes or deletes that key
package algorithms
