// Package shared limits together with every process that uses the same Redis.
//
//	rdb := redis.NewClient(&redis.Options{Addr: "localhost:6379"}) // of github.com/redis/go-redis/v9
//	limiter := ratelimit.Must(shared.New(rdb, nil))
//	defer limiter.Close()
//	d, err := algorithms.Allow(ctx, limiter, "usr=42", algorithms.TokenBucket(60, time.Minute))
//
// Redis decides a call in one round trip. In Redis Cluster, checks in several slots are taken slot by slot, and given
// back if a later slot denies.
//
// # Outages
//
// A Redis outage does not become an outage of the service. Every call ends within about Options.Deadline, or twice
// that if it waits to be sent or has several slots. A call that a later slot refuses also waits until the earlier
// ones have their units back, up to a deadline for each. If Redis has not answered, each check's
// [algorithms.FailureMode] does. When round trips go on failing, a circuit opens, and calls are answered at once until
// Redis is back. Each master of a Cluster has a circuit.
//
// Of N live instances, each admits one Nth of a limit by itself, and at least one unit. When Redis is back, it
// charges the units that were admitted without it, as far as they fit.
//
// A script that Redis may have executed is never sent again. A Return is Undecided if it is kept for later, or needs no
// Redis. It is an error if Redis has perhaps executed it, unless its limit is Concurrent.
//
// OUTAGES.md, in this folder, bounds what each failure admits and denies. RUNBOOK.md says what to do.
//
// # Remembered denials
//
// For a second after Redis has denied a key, this process denies what certainly has no room in that answer, so
// another instance's settlement acts here after a second at most. If a remembered answer denies a call, its other
// checks are Undecided.
//
// # Ahead
//
// With Options.Ahead, a take of a client that is far from its limit is admitted at once, and charged within some
// milliseconds. Near the limit Redis decides. In any time T, a token bucket admits at most B + R·T/W + Ahead per cent
// of B; a fixed window Ahead per cent more, which count in the windows after it; a sliding window counter Ahead per
// cent more in each window. OUTAGES.md says what failures and new instances add. Remaining is an estimate, lowered by
// what all instances may admit ahead. Near the limit it is exact.
//
// Calls ask Redis if a check of theirs is Exact, FailClosed, free, a trial, or of another algorithm, or if its cost
// is more than Ahead per cent of the burst, divided by the number of instances: with 100 per minute and Ahead 25, 26
// instances always ask.
//
// # The client
//
// Any client of go-redis works, except a Ring. [redis.NewClient] with an address needs no other options. Set those of
// a Cluster's client as RUNBOOK.md says ("Client settings").
//
// # Stored keys
//
// Redis stores each key as prefix:{first}|rest:policy:tag, until its limit would be full. A part that is long, or
// that has blanks, braces or control characters, is stored as its digest. The set prefix:{instances} holds the live
// instances.
package shared
