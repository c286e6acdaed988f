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
//	deny cache  calls that Redis has denied and that cannot be allowed yet
//	lease       takes of hot keys, from blocks of units (off by default)
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
//   - Every call ends within about Options.Deadline, or twice that if it waits behind others.
//   - If Redis has not answered, each check's [algorithms.FailureMode] does. A FailClosed take refuses the call with
//     [algorithms.ErrUnavailable].
//   - After five failed round trips in a row, or if half of at least twenty fail within ten seconds, the circuit opens,
//     and calls are answered at once. Probes close it again.
//   - A script that Redis may have executed is never sent again. If Redis executes it after a stall, that is the charge
//     of a call that was admitted meanwhile.
//
// Of N live instances, each admits one Nth of a limit by itself, and at least one unit. A key that was at least half
// used starts with that use. Later Redis receives the units that were admitted without it. It charges as many as fit, as
// of then, so a client that uses its whole limit may be denied once. Together the instances admit at most
//
//	B + R·T/W + k·B  through a Redis that lost its data k times, and
//	B + R·U/W + N    locally, if some instance was without Redis for a time U,
//
// in a time T, of a limit of R per W with burst B, and the charges within the replication lag of each failover. A fixed
// window admits R per window of the clock.
//
// # Remembered denials
//
// This process remembers a denial until its RetryAfter, for at most a second, so a settlement of another instance acts
// here after a second at most. Waits are never too short; Remaining may be too low. If memory denies one check of a
// call, the others are Undecided.
//
// # The client
//
// Any client of go-redis works, except a Ring. MaxRetries does not retry scripts.
//
//	ReadTimeout, WriteTimeout  500 ms. Below Options.Deadline the client closes a connection
//	                           each time; 5 s, the default, keep those of a hanging Redis.
//	PoolSize                   The limiter uses up to half of it (Options.InFlight), and in a
//	                           Cluster two more per 256 slots. For a Redis 2 ms away, set 40.
//	DialerRetries              1 lets errors of calls that cannot connect name the cause.
//	ContextTimeoutEnabled      true makes lone calls faster, if MaintNotificationsConfig disables
//	                           notifications, and the client has neither OnConnect nor a
//	                           provider of credentials. Hooks must obey the deadline.
//
// [Limiter.Findings] reports settings that do not fit. In an outage go-redis logs failed dials; logging.Disable of its
// package logging stops that.
//
// # Stored keys
//
// Redis holds each key as prefix:{first}|rest:policy:tag, until it would be full. A part that is long, or that has
// blanks, braces or control characters, is stored as its digest. The set prefix:{instances} holds the live instances.
package shared
