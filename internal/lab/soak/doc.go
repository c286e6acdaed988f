// Command soak troubles Redis under load, and checks that shared.New keeps its
// promises.
//
//	make soak                                    # ten minutes
//	SOAK=60s make soak                           # the same in CI
//	go -C internal/lab run ./soak -for 2m -seed 7 -only cluster
//
// It starts its own redis-servers, and goes through three topologies in turn: a
// standalone server, a primary with a replica and sentinels, and a Cluster of
// three masters with a replica each. Four limiters share each topology, as the
// processes of a service would. Each has its own client with go-redis's default
// settings. Forty-eight callers mix algorithms, costs, hot and cold keys, one
// limit or two per call, all failure modes, Return, Force, and callers that hang
// up.
//
// Each topology has two legs. In "keeps", no trouble makes Redis lose data. In
// "loses", any trouble may come. Trouble comes every 0.5 to 5 s, to servers and to
// the network at the same time:
//
//	stop                 SIGSTOP, then SIGCONT; a long stop may promote a replica
//	kill                 SIGKILL, and a restart without data
//	promote              SIGKILL of a master, until a replica has taken its place
//	script flush, client kill, flush all
//	full                 maxmemory of one byte: Redis refuses writes
//	delay, trickle       slow replies
//	swallow, cut         replies that never come
//	black hole, unreachable, refuse
//
// A fault of the network lies between one instance, or all, and one server, or
// all. It may strike scripts only. Each kind comes once before any kind comes
// again. The first fault cuts the replies to all scripts, because a client that
// sends a script twice would charge twice.
//
// # Promises
//
// A limit admits R units per W with burst B. N instances share it for a time T,
// in which Redis loses its data k times: by kill, flush or promotion. (The loss of
// one server counts for all keys.)
//
//  1. Redis admits at most B + R T/W + k B to a key. A limit of windows may admit
//     R in each window that T touches, in place of B + R T/W.
//  2. All instances together admit locally at most B + R T/W + N, whatever
//     Redis does, because each has 1/N of the limit, rounded up.
//  3. A call takes at most the deadline (50 ms) for each slot of a Cluster, and
//     100 ms more. Stalls of the machine do not count.
//  4. A call returns no error, with three exceptions: FailClosed returns
//     ErrUnavailable, and so does a Return that may have been executed. A caller that
//     hung up gets its own error. A FailClosed take is decided by Redis.
//  5. Every circuit closes within 3 s after the last trouble.
//  6. Take and Force charge once. Some keys are used only once, with a limit whose
//     window never rolls over. After a leg without losses Redis holds, for each
//     of them, exactly the charge that it reported, and never more than the
//     cost. It also holds the units that an instance admitted while all its circuits
//     were open, except the units in Stats.Fallback.Lost.
//  7. After the trouble, a greedy client gets exactly the limit.
//
// algorithms/shared/OUTAGES.md derives 1 and 2. When instances lose Redis at
// different moments, both may add up.
//
// # How to read the output
//
// A line names a trouble that has ended and how long it lasted. A line that
// begins with BROKEN names a broken promise. The table has a line per leg:
//
//	losses            how often data was lost; more than was planned on a slow machine
//	trips             how often circuits opened
//	local, passed     checks that an instance decided alone, and that failed open
//	refused, hung up  calls that failed closed, and whose callers hung up
//	handed back       units that instances reported to Redis after an outage
//	lost              units whose report got no reply
//	audited           keys of promise 6
//	fullest           the key nearest to its bound of promise 1 or 2: units of bound
//	closed in         how long circuits took to close
//	slowest, net      the longest call, with and without stalls of the machine
//
// The exit code is 1 if a promise was broken. The last line then has the command
// that repeats the run: the same seed gives the same trouble and the same calls,
// but not at the same microseconds.
package main
