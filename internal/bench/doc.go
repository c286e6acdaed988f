// Command bench measures penstock against its peers, side by side in one run.
//
//	make bench
//	go -C internal/bench run . -only memory -rounds 3
//	go -C internal/bench run . -only 'curve-2ms-(64|256)'
//	go -C internal/bench run . -only redis-hold -rows logs
//
// -only selects measures by their names, such as curve-loopback-256, http-2ms,
// policies-1 or redis-zipf. The whole takes about 20 minutes. -rows selects the
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
// asked once for every key, or for a warm-up, so that connections, scripts and
// states exist.
//
// Peers are used as their READMEs show, with the options they have then. All
// who use go-redis, penstock included, have a client of their own with its
// default options: a pool of ten connections per core. One more redis_rate has
// 256 connections, to show what that changes. One more penstock has a client
// that obeys contexts while it reads and has no maintenance notifications.
// Rueidis writes the commands of concurrent callers into one pipeline.
// It runs bucket.lua: as lean a token bucket as a script of one key can
// be. The same script runs through go-redis's autopipeline, which is
// experimental. It has full duplex over a network, as its documentation advises.
//
//	Figure                   Comes from
//	checks, latencies        the callers' clock; failed checks do not count as checks
//	our CPU per check        getrusage of this process, callers included
//	Redis CPU per check      used_cpu_user + used_cpu_sys of INFO, before and after
//	proxy's CPU per check    the process's CPU clock, before and after
//	allocations per check    runtime.MemStats of the whole process, rounded down
//	memory per key           used_memory of INFO, on a server of its own, without connections;
//	                         or the heap after garbage collection, names of keys included
//	one script               the server's slow log, which counts no network
//
// A quantile is left out where fewer than three checks of a round took longer.
//
// # Networks
//
// The measures with a round trip of 0.5 or 2 ms, or with jitter, reach Redis
// through a proxy, a process of this program. It delays both directions by half
// of the round trip. With jitter, one chunk of bytes in twenty comes up to 2 ms
// later, and the bytes behind it wait. Bytes never change their order.
//
// The round trip is the median time of a PING, seen by a thread that waits in
// poll. What the proxy itself costs is part of it: the program shortens the
// delay until PINGs at 1, 16 and 256 connections take the right time, and fails
// if they cannot be brought within 10 %. That happens while the machine is busy.
// The report has the times of PINGs.
//
// The proxy, callers and Redis share the cores, where a network costs none.
// So peers that send each check by itself pay for the proxy, too: its CPU per
// check is a table of its own. A connection is opened without delay.
//
// # Processes
//
// Processes of this program that load one Redis together begin at the same time.
// In the Zipf run all contestants have one limit, a fixed window of 1 s. A short
// run without denials chooses it: 0.65 of what the hottest key asks for with
// leases. Units above the limit are counted in every window, by the end of the
// window that each decision names. Units below it are counted in the windows
// that denied a check.
//
// Leases are measured when a key is hot: callers run for a fifth of a second
// before each round. What four processes admit is counted until their callers
// are denied for good, against the limit.
//
// # What the numbers do not say
//
//   - Callers, kernel and server share the cores. In production a server of its
//     own makes the difference in throughput smaller, until it is busy; then the
//     CPU per check is what counts.
//   - A closed loop asks less while it waits. Its p99 is a busy service's,
//     not the p99 of a service that is asked more than it can answer.
//   - Contestants do not promise the same. ulule/limiter counts in fixed windows,
//     httprate in two, and go-limiter gives all back at once. Rueidis's script does
//     neither all-or-nothing over several limits nor changed limits. redis_rate
//     asked three times charges earlier policies when a later one denies.
//   - A slow-down from 1 000 to 1 000 000 keys flatters whoever is slow with
//     1 000: read it with the time beside it.
//   - throttled fails when a key changes ten times while it tries: its checks per
//     second on one key are the checks that did not fail.
//   - The longest time of a script includes that in which the system ran
//     something else; the median does not.
//   - The measures by pace move the limiter's clock as fast as the checks come, since no
//     machine makes 64 million checks per second. What a key's expiry costs Redis
//     is not in them.
//
// # Quick
//
// With -quick each contestant runs for an instant. The run fails if one does not
// work or if allocations exceed their bar, and ignores times: it keeps the
// program from rotting and is part of make check.
package main
