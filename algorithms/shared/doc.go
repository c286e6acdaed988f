// Package shared limits together with every process that uses the same Redis.
//
//	rdb := redis.NewClient(&redis.Options{Addr: "localhost:6379"})
//	limiter := ratelimit.Must(shared.New(rdb, nil))
//	defer limiter.Close()
//	d, err := algorithms.Allow(ctx, limiter, "usr=42", algorithms.TokenBucket(60, time.Minute))
//
// # Layers
//
// A call goes through these layers, from the top down, until one answers it:
//
//	Layer       Answers
//	deny cache  calls that Redis has denied and that cannot be allowed yet
//	lease       takes of hot keys, from blocks of units (off by default)
//	fallback    calls that Redis has not answered in time
//	Redis       everything else: one script, and one round trip, for any number of limits
//
// While scripts are in flight, other calls gather, and the next script decides
// them all. So a lone call waits for nothing, and many calls share round trips.
//
// In Redis Cluster, checks of one principal share a slot and are one script.
// Checks in several slots are taken slot by slot, and given back if a later slot
// denies. That never admits too much. For the moment in between, it can deny
// others a unit that comes back. A process that dies in between leaves the units
// charged until they drain.
//
// # Outages
//
// A Redis outage does not become an outage of the service:
//
//   - Every call ends within about Options.Deadline, or twice that if it waits
//     behind others, whatever the client's timeouts are.
//   - A call that Redis has not answered is answered by each check's
//     [algorithms.FailureMode]. FailLocal, the default, lets the memory of this
//     process decide. FailOpen lets the request pass. A FailClosed take refuses
//     the call with [algorithms.ErrUnavailable].
//   - After five failed round trips in a row, or if half of at least twenty fail
//     within ten seconds, the circuit opens, unless the trouble has lasted for
//     less than two deadlines. While it is open, calls are answered at once
//     without Redis. The limiter itself writes a probe after 0.25 s, 0.5 s, and
//     then every second. The first probe that succeeds closes the circuit. If it
//     opens again within 10 s, the pauses double, up to 30 s.
//   - Errors that a caller can cause do not open the circuit: a client that hung
//     up, a context that ended, or a stored key that holds something else.
//   - A charge is made once. A script that Redis may have executed is never sent
//     again, whatever the client's MaxRetries.
//
// An outage is no second quota. Of N live instances, each admits one Nth of a
// limit by itself. It starts from the use that Redis last reported for the key,
// if that was half of the burst or more. When Redis is back, it receives the
// units that were admitted without it and that still count.
//
// In a time T, a limit of R per W with burst B admits B + R·T/W to a key (a fixed
// window admits R in each of the clock's windows). N instances together admit at
// most
//
//	B + R·T/W + k·B  through a Redis that lost its data k times, and
//	B + R·U/W + N    locally, if some instance was without Redis for a time U,
//
// and the charges within the replication lag of each failover. The second line
// comes on top only as far as Redis could not receive the units, or others had
// used them before it did. Locally, limits of windows are buckets of the same
// rate, except fixed windows of a single instance. A window that was spent when
// Redis went stays spent until Redis would have admitted again. A cost above the burst of a
// share is admitted when nothing is in use, so at first each instance admits one.
//
// A Return goes to the limiter that issued the receipt. It is dropped if that
// limiter is not available.
//
// # Remembered denials
//
// A denied cost stays denied until its RetryAfter, whoever else takes. So this
// process remembers each denial until then, for at most a second, and answers the
// same cost of the same limit on the same key by itself: the four latest costs of
// a key. Clients that retry in a
// loop cost Redis nothing.
//
// A settlement through this limiter ends a remembered denial at once. The
// following act after a second at most: settlements of other instances, units
// that a call in several slots gives back, a limit that was changed back, and
// keys that were flushed from Redis. Waits count down from the remembered answer,
// so they are never too short. Remaining may be too low by the units that have
// come back since.
//
// If one check of a call is remembered as denied, the call is denied, and the
// other checks are not asked: their decisions are allowed and Undecided. A check
// that is Exact is never answered from memory.
//
// # Leases
//
// With Options.Lease, a hot key takes units in blocks, and its takes are answered
// from the blocks without Redis. Redis charges a unit before it is spent, so
// leases admit no more in total. See [LeaseOptions] for what changes.
//
// # The client
//
// Any client of go-redis works, except a Ring, which forgets limits when it moves
// keys between shards. These of its options matter:
//
//	ReadTimeout, WriteTimeout  A little longer than Options.Deadline. The limiter keeps its
//	                           deadline by itself, and a client that gives up first closes a
//	                           connection each time. Much longer timeouts hold connections
//	                           to a Redis that hangs.
//	PoolSize                   The limiter uses up to half of the pool, unless Options.InFlight
//	                           says otherwise; in a Cluster, two batches for each of 64 ranges of
//	                           slots come on top. For a Redis 2 ms away, set it to 40.
//	DialerRetries              1 makes the errors of calls that cannot connect name the cause. The
//	                           default dials for longer than the deadline.
//	MaxRetries                 Any value: scripts are not sent again by the client.
//	ContextTimeoutEnabled      true makes lone calls faster: with maintenance notifications disabled
//	                           (MaintNotificationsConfig), a caller that finds no other call in the
//	                           queue sends its call itself. Then it returns with the answer or at
//	                           the deadline, and not when its context is cancelled. Hooks of the
//	                           client must obey the deadline, too. A client with OnConnect or a
//	                           provider of credentials is not called like that.
//
// During an outage go-redis writes lines of its own about failed dials. To leave
// the log to the limiter, call logging.Disable of go-redis's package logging.
//
// [Limiter.Findings] reports settings that do not fit. [Limiter.Ready] finds
// misconfigurations at start: see [ErrMisconfigured].
//
// # Testing your service
//
// Most tests need no Redis: give the middleware an [algorithms.Memory] with a
// clock of your own, or run the test in testing/synctest. A test of several
// instances can use a real redis-server, or miniredis
// (github.com/alicebob/miniredis/v2):
//
//	m := miniredis.RunT(t)
//	rdb := redis.NewClient(&redis.Options{Addr: m.Addr()})
//	limiter, err := shared.New(rdb, &shared.Options{
//		DenyCacheKeys: shared.DenyCacheOff, // a denial ends as soon as the clock says so
//		Deadline:      time.Second,         // a busy test machine is no outage
//	})
//	m.SetTime(now)                          // the clock of limits, from the first request on
//	// ... the third request is denied ...
//	m.SetTime(now.Add(time.Minute))         // not FastForward, which moves TTLs only
//
// FlushAll forgets all limits. PerDay and PerMonth follow SetTime for two
// periods from today. For other dates, set Options.Now, which replaces the clock of
// the server. If the server cannot run the script, the limiter logs an error, and
// decisions have the Source [algorithms.Local]. A test that wants
// [algorithms.Shared] fails then.
//
// # Stored keys
//
// Redis holds each key of a limiter as prefix:{first}|rest:policy:tag, with a
// TTL after which it would be full. A part of a key that is long, or that holds
// blanks, braces or control characters, is stored as its digest. The set
// prefix:{instances} holds the live instances.
package shared
