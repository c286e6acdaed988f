// Command bench measures penstock against its peers, side by side in one run.
//
//	make bench
//	go -C internal/bench run . -only memory -rounds 3
//	go -C internal/bench run . -only redis-hold -rows logs
//
// -only selects measures by their names, such as redis-many. -rows selects the
// rows of the tables by their names, such as penstock or redis_rate. Both are
// regular expressions. A bar is judged only if all the rows that it compares run.
//
// It starts its own redis-server on a free port of the loopback address. It is
// a module of its own, so that no peer is in penstock's go.mod.
//
// # How it measures
//
// Each measure lets its contestants take turns, one round after the other, so
// that whatever slows the machine down slows all of them down. What counts is
// the ratio of two contestants in the same round; the table has the median over
// the rounds. Absolute numbers are those of the machine, and of what else it
// did: the load average stands in the table's head.
//
// Callers are a closed loop: each asks, waits for the answer, and asks again at
// once, for a key that it draws at random. All asked is admitted, so that
// everybody writes, which is the dearer path. Before a contestant is measured,
// a small limit of it must have admitted exactly five of ten takes. Then it is
// asked once for every key, so that connections, scripts and states exist.
//
// Peers are used as their READMEs show, with the options they have then. All
// who use go-redis, penstock included, have a client of their own with its
// default options: a pool of ten connections per core. One more redis_rate has
// 256 connections, to show what that changes. rueidis, which writes what
// concurrent callers ask into one pipeline by itself, runs bucket.lua: as lean
// a token bucket as a script of one key can be.
//
//	Figure                   Comes from
//	checks, latencies        the callers' clock; failed checks do not count as checks
//	Redis CPU per check      used_cpu_user + used_cpu_sys of INFO, before and after
//	allocations per check    runtime.MemStats of the whole process, rounded down
//	memory per key           used_memory of INFO, on a server of its own, without connections;
//	                         or the heap after garbage collection, names of keys included
//	one script               the server's slow log, which counts no network
//
// Leases are measured when a key is hot: callers run for a fifth of a second
// before each round. What four processes admit is counted until their callers
// are denied for good, against the limit.
//
// # What the numbers do not say
//
//   - Nothing crosses a network: a round trip is short, and callers, kernel and
//     server share the cores. In production a server of its own makes the
//     difference in throughput smaller, until it is busy; then the CPU per check
//     is what counts.
//   - A closed loop asks less while it waits. Its p99 is that of a busy service,
//     not that of one which is asked more than it can answer.
//   - Contestants do not promise the same. ulule/limiter counts in fixed windows,
//     httprate in two, go-limiter gives all back at once; rueidis's script does
//     neither all-or-nothing over several limits nor changed limits. redis_rate
//     asked three times charges earlier policies when a later one denies.
//   - A slow-down from 1 000 to 1 000 000 keys flatters whoever is slow with
//     1 000: read it with the time beside it.
//   - throttled fails when a key changes ten times while it tries: its checks per
//     second on one key are those that did not fail.
//   - The longest time of a script includes that in which the system ran
//     something else; the median does not.
//   - The curves move the limiter's clock as fast as the checks come, since no
//     machine makes 64 million checks per second. What a key's expiry costs Redis
//     is not in them.
//
// # Quick
//
// With -quick each contestant runs for an instant. The run fails if one does not
// work or if allocations exceed their bar, and ignores times: it keeps the
// program from rotting and is part of make check.
package main
