// Command soak troubles Redis for a while, under load, and sees whether
// shared.New keeps its promises.
//
//	make soak                                    # ten minutes
//	SOAK=60s make soak                           # what CI does
//	go run ./internal/soak -for 2m -seed 7 -only cluster
//
// It starts its own redis-servers, and goes through three topologies in turn: a
// standalone server, a primary with a replica and sentinels, and a Cluster of
// three masters with a replica each. Several limiters, as many processes of a
// service would have, share each: every one has a client of its own with
// go-redis's default settings, and circuits that stay open for 1.5 s, so that
// they open and close often. Fifty callers mix algorithms, costs, hot and cold
// keys, one limit or two per call, all failure modes, returns, forces, and
// hanging up.
//
// The time of a topology has two acts. In the first, "keeps", nothing makes
// Redis lose data; in the second, "loses", anything may happen. Trouble comes
// every 0.5 to 5 s, to servers and to the network at the same time:
//
//	stop, long stop      SIGSTOP, then SIGCONT; with replicas, a long one may promote one
//	kill                 SIGKILL, and a restart without data
//	promote              SIGKILL of a master, until a replica has taken its place
//	script flush, client kill, flush all
//	full                 maxmemory of one byte: writes are refused
//	delay, trickle       slow replies
//	swallow, cut         replies that never come
//	black hole, unreachable, refuse
//
// The network fails for one instance or for all, to one server or to all, and
// may spare all commands except scripts. Each kind comes once before any again,
// and first of all scripts' replies are cut: a second attempt would charge
// twice.
//
// # What must hold
//
// For a limit of R per W with burst B, on N instances, over a time T with k
// losses of data (kill, flush, promotion; each server's counts for all keys):
//
//  1. Redis admits at most B + R T/W + k B to a key. Of windows, whose R may be
//     admitted around every turn, R for each that T touches in place of B + R
//     T/W.
//  2. All instances together admit locally at most B + R T/W + N, whatever
//     Redis does: each has 1/N of the limit, rounded up.
//  3. A call takes at most the deadline (50 ms), and once more for a slot of a
//     Cluster that it gives back in, and 100 ms; the machine's stalls do not
//     count.
//  4. A call ends in no error, except FailClosed in ErrUnavailable, and a
//     caller that hung up in its own. A FailClosed take is decided by Redis.
//  5. Every circuit is closed 3 s after the last trouble at the latest.
//  6. A take or a force is charged once. Keys that are asked only once have a
//     limit whose window never turns. At the end of the first act, Redis holds
//     for each exactly the units that it reported as charged, and never more
//     than the caller asked for. It also holds the units that were admitted
//     while circuits were open, except the units in Stats.Fallback.Lost.
//  7. Afterwards a client that keeps to its limit is not denied, one that waits
//     for RetryAfter is admitted, and a greedy one gets exactly the limit.
//  8. After Close, goroutines, heap and connections are back where they were.
//
// 1 and 2 are the runbook's bound. Mostly the second comes instead of the first
// rather than on top, because Redis receives it. That fails if instances
// recover one after the other, and Redis is used up before all have handed back
// their units. The table tells how often both together were more than 1.25 of
// 1, and N ("beyond").
//
// # How to read it
//
// A line is a trouble that is over, with how long it took, or begins with
// BROKEN and says which promise was. The table has a line per act:
//
//	losses            times that data was lost; one that nobody asked for is a slow machine's
//	trips             circuits that opened
//	local, passed     checks that were decided locally, and that failed open
//	told, lost        units that were handed back, and that were lost on the way
//	audited           keys of point 6
//	fullest           the bound of 1 or 2 that was come nearest to, in units
//	beyond, together  keys above the runbook's bound, and the nearest to it
//	closed in         how long circuits took to close
//	slowest, net      call, with and without stalls of the machine
//	stalls, longest   when a goroutine that sleeps 1 ms at a time did not run for 2 ms
//
// The exit code is 1 if a promise was broken, and the last line says how to
// repeat it: the same seed gives the same trouble and the same questions,
// though not at the same microseconds.
package main
