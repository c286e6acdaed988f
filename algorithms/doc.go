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
//	a quota per calendar day or week             PerDay, PerWeek       O(1)
//	a quota per calendar month, quarter or year  PerMonth and so on    O(1)
//	100 requests at a time                       Concurrent            O(n)
//	no requests                                  Nobody                none
//
// [Allow], [AllowN], [AllowUpTo] and [Wait] take one key and one limit.
//
// [Memory] counts in this process, and shared.Limiter with all instances, through Redis. [Divide] gives each instance its
// part if there is no Redis.
//
// # Several limits, one decision
//
// [Limiter.Allow] charges all takes of a call or none:
//
//	checks := []algorithms.Check{
//		{Policy: "merchant", Key: "usr=42", Limit: algorithms.TokenBucket(100, time.Minute), Cost: 1},
//		{Policy: "global", Key: "const=all", Limit: algorithms.FixedWindow(10_000, time.Hour), Cost: 1},
//	}
//	err := limiter.Allow(ctx, checks)
//	if err == nil && algorithms.Allowed(checks) {
//		// proceed
//	}
//
// The ops of a call of takes:
//
//	Op            Charged, if the call proceeds                 Denies the call if
//	Take          always                                        its cost does not fit
//	TakeReserved  always; if the Take before it fits, that is   its cost fits neither in the burst nor, if the Take
//	              charged, too                                  before it fits, in twice the burst
//	TakeElse      if the Take before it does not fit; that is   neither fits
//	              charged if it fits
//	Trial         if its cost fits                              never
//	TrialInstead  if its cost fits, also if the take or pair    never
//	              before it has denied the call
//
// A TakeReserved shares a limit fairly when it is full: the Take before it is the share of one tenant. A TakeElse puts
// one quota behind another. Either is one pair with the Take just before it. There are no pairs of pairs.
//
// The files example*_test.go have more.
//
// # What is promised
//
//	A limit stays the same      in every interval at most what its algorithm's documentation says is admitted, and
//	                            a request that fits is admitted
//	Several limits in one call  all are charged, or none
//	A TakeReserved              a token bucket admits in every interval at most twice its burst and rate × time. If
//	                            all shares together are at most the limit, a request within its share is admitted
//	RetryAfter                  one microsecond before it the same request is denied; at it the request is admitted if
//	                            no other client spends
//	A Return                    a token bucket: in every interval, final costs are at most burst + rate × time + the
//	                            units that were taken before the interval and returned in it. Windows and the log: as
//	                            if the units had not been taken. See [Return] for the others
//
// A request counts at its admission, with its final cost. A token bucket and a log credit what is returned, so clients
// can use nearly what they offer. A window loses the units that are reserved when it turns. A leaky bucket credits only
// its newest take.
//
// # What happens to a key
//
//	Its limit is raised                the added units can be used at once
//	Its limit is lowered               units in use still count, up to twice the new burst, and come back at the lower
//	                                   rate
//	The rate of its bucket is raised   the new rate also counts for the time since the last take, and up to one unit's
//	                                   time at the old rate before it. So a raise may fill the bucket at once
//	Its limit changes in any way       its key in Redis may expire once, when the old limit would be full: then the key
//	                                   starts full
//	It is reset, its limit changes,    a Return of an earlier take credits at most its own units, and never more than
//	or the clock steps back            are in use
//	Its algorithm changes              a new key, which starts full
//	The clock steps back over 100 ms   the state moves to the new now and keeps its used units
//	A caller's clock is late by d      the caller can add rate × d units
//	Its state does not parse           it counts as absent, and the next charge replaces it
//	Redis holds another type there     an error; penstock never writes or deletes that key
package algorithms
