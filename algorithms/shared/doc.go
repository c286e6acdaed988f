// Package shared limits together with every process that uses the same Redis.
//
//	rdb := redis.NewClient(&redis.Options{Addr: "localhost:6379"}) // of github.com/redis/go-redis/v9
//	limiter := ratelimit.Must(shared.New(rdb, nil))
//	defer limiter.Close()
//	d, err := algorithms.Allow(ctx, limiter, "usr=42", algorithms.TokenBucket(60, time.Minute))
//
// A call goes through these layers until one answers it:
//
//	Layer       Answers
//	views       calls that Redis has denied within the last second, and with Options.Ahead most others
//	fallback    calls that Redis has not answered in time
//	Redis       everything else: one script, in one round trip
//
// Calls that wait for a script share the next one. In Redis Cluster, checks in several slots are taken slot by slot,
// and given back if a later slot denies.
//
// # Outages
//
// A Redis outage does not become an outage of the service:
//
//   - Every call ends within about Options.Deadline, or twice that if it waits behind others, for a new connection, or
//     first for its write and then for its reply.
//   - If Redis has not answered, each check's [algorithms.FailureMode] does. A FailClosed take refuses the call with
//     [algorithms.ErrUnavailable].
//   - After five failed round trips in a row, or if half of at least twenty fail within ten seconds, the circuit opens,
//     and calls are answered at once. A probe each second closes it again. Each master of a Cluster has a circuit.
//   - A script that Redis may have executed is never sent again. If Redis executes it after a stall, that is the charge
//     of a call that was admitted meanwhile. A call that was refused is returned if its reply still comes.
//   - A Return that Redis has certainly not executed is kept, and sent before the circuit closes. Its answer is
//     Undecided. A Return that Redis has perhaps executed is an error, unless its limit is Concurrent: such a Return
//     names its units, and is repeated.
//
// Of N live instances, each admits one Nth of a limit by itself, and at least one unit. A key that Redis has denied to
// this process stays denied until its RetryAfter. If this process knows how much of a limit is in use, it counts its part
// of that. When Redis is back, it receives the units that were admitted without it and charges as many of them as fit,
// as if they had just been admitted, which is why a client that uses its whole limit may be denied once. OUTAGES.md,
// in this folder, bounds what the instances admit together in each kind of failure.
//
// # Remembered denials
//
// This process remembers what Redis last said of a key that it denied. For a second it denies what certainly has no room
// in that, so a settlement of another instance acts here after a second at most. If a remembered answer denies a call,
// its other checks are Undecided.
//
// # Ahead
//
// With Options.Ahead, a take of a client that is far from its limit waits for no round trip: it is admitted at once, and
// charged within some milliseconds. Near the limit Redis decides, as it does without Ahead. In any time T, a token bucket
// then admits at most B + R·T/W + Ahead per cent of B; a fixed window Ahead per cent more, which count in the windows
// after it; a sliding window counter Ahead per cent more in each window. Each of these adds what one instance may admit,
// at most: an instance that starts, one that crashes, and a charge that is lost; an outage adds what all may admit.
// Remaining is an estimate, lowered by what all instances may admit ahead. A Return of units whose charge is on its way to
// Redis waits for the end of that charge.
//
// Calls ask Redis if a check of theirs is Exact, FailClosed, free, a trial or a Candidate, or of another algorithm; and if its
// cost is more than Ahead per cent of the burst, divided by the number of instances: with 100 per minute and Ahead 25, 26
// instances always ask. They also ask while 16 384 keys have charges under way. [algorithms.Stats] counts why calls ask.
//
// # The client
//
// Any client of go-redis works, except a Ring. [redis.NewClient] with an address needs no other options. MaxRetries does
// not retry scripts.
//
//	PoolSize                   The limiter uses up to four fifths of it (Options.InFlight), of a Cluster
//	                           for each master. For a Redis 2 ms away, set 50.
//	ReadTimeout, WriteTimeout  Of a redis.Client, the limiter replaces them by ten deadlines. For
//	                           a Cluster, set 500 ms: 5 s, the default, keep connections of a
//	                           Redis that hangs for as long.
//	MinRetryBackoff,           Of a Cluster's client, set both to -1: otherwise go-redis waits before it
//	MaxRetryBackoff            follows a redirection, and while one slot moves, all calls of its master wait.
//	DialerRetries              1 lets errors of calls that cannot connect name the cause.
//	ConnMaxLifetime            Set it, such as to a minute, if a DNS name moves to another server (blue and
//	                           green): the pool keeps connections to the old server as long as they work.
//	OnConnect, credentials     A client that calls the program for them makes lone calls a little slower.
//
// The limiter does not see hooks that a program adds to a redis.Client after [New]. In an outage go-redis logs failed
// dials; logging.Disable of its package logging stops that.
//
// # Stored keys
//
// Redis stores each key as prefix:{first}|rest:policy:tag. The key expires when its limit would be full. A part that is
// long, or that has blanks, braces or control characters, is stored as its digest. The set prefix:{instances} holds the
// live instances.
package shared
