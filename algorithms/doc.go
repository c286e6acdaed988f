// Package algorithms decides whether requests may proceed. A [Limit] says how much, and a [Limiter] decides. The
// limit travels with every call:
//
//	limiter := algorithms.NewMemory(nil)
//	d, err := algorithms.Allow(ctx, limiter, "usr=42", algorithms.TokenBucket(60, time.Minute))
//
//	You want                              Use
//	100 a minute on average, and bursts   TokenBucket
//	the same, served evenly spaced        LeakyBucket
//	about 100 in every minute             SlidingWindowCounter
//	100 in every minute, and never more   SlidingWindowLog
//	100 in each minute of the clock       FixedWindow
//	a quota per day, week, … or year      PerDay, PerWeek, PerMonth, PerQuarter, PerYear
//	100 requests at a time                Concurrent
//	no requests                           Nobody
//
// [Memory] counts in this process, and shared.Limiter in all instances, through Redis. [Divide] is for instances
// without Redis.
//
// # Several limits, one decision
//
// [Limiter.Allow] charges all takes of a call or none, as the Example in example_test.go shows.
//
// [TakeReserved] shares a limit fairly when it is full, and [TakeElse] puts one quota behind another. Either makes a
// pair with the Take just before it in the slice, which never denies the call: its Decision says whether its own cost
// fits, and that of the second speaks for the pair. Both keys must be used once in the call, and the second's Fail
// holds for both. There are no pairs of pairs.
//
// # What is promised
//
// If a limit stays the same, it admits in every interval at most what its algorithm's documentation says, and a
// request that fits is admitted. One microsecond before its RetryAfter, a request is denied; at it, the request is
// admitted if no other client spends.
//
// A request counts at its admission, with its final cost. In every interval, the final costs of a token bucket are at
// most burst + rate × time + the units that were taken before the interval and returned in it.
//
// RUNBOOK.md says what happens to a key when its limit changes or a clock steps.
package algorithms
