// Command bench measures penstock against its peers, side by side in one run.
//
//	make bench
//	go -C internal/lab run ./bench -only memory -rounds 3
//	go -C internal/lab run ./bench -only 'curve-2ms-(64|256)'
//	go -C internal/lab run ./bench -only redis-hold -rows logs
//	go -C internal/lab run ./bench -only instructions
//	go -C internal/lab run ./bench -only bareprogram
//
// -only selects measures by their names, such as curve-loopback-256, policies or
// redis-zipf. -rows selects rows of the tables by their names, such
// as penstock or redis_rate. Both are regular expressions. The report judges a bar
// only if all rows that it compares have run. The whole takes about 25 minutes.
//
// The command starts its own redis-server on a free port of the loopback address. The
// measure of instructions also needs valgrind.
// It is in a module of its own, so that penstock's go.mod does not name the peers.
//
// With -o the command writes two pages. RESULTS.md has the figures by which users decide,
// and two plots. MEASUREMENTS.md has the bars, the reasons why bars are missed, and all
// tables. The curves have a table for each figure that a bar of their network judges.
//
// # How it measures
//
// The contestants of a measure take turns, round after round, so that a slow
// machine slows all of them down. What counts is the ratio of two contestants in
// the same round. The table has the median over the rounds: five, or fifteen where
// contestants differ by less than rounds do. Absolute figures
// depend on the machine and its other work, so the head of the report has the
// load average.
//
// Callers are a closed loop: each asks, waits for the answer, and asks again at
// once, for a random key. The limits admit every check, so that every contestant
// writes, which costs more than a denial. Before a measurement, each contestant
// must admit exactly five of ten checks under a small limit. Then it runs without
// measurement, once per key or for a set time, so that connections, scripts and
// states exist.
//
// The run once per key passes copies of the keys. Services make the text of a key for
// each request, and Go's maps find a text faster if it is at the address of their own.
// With the same text, go-limiter's takes in memory took 201 ns instead of 228, and
// penstock's 222 instead of 215 (medians of ten processes, in turn).
//
// The middleware keeps the header values that it has sent lately, and nearly all
// responses of these measures repeat a value. A response with new numbers takes a
// fifth more instructions and a third allocation: package middleware has the benchmark
// Handler/ip-new.
//
// Peers are used as their READMEs show, with the default options. Each contestant
// on go-redis, penstock included, has its own client with default options: a pool
// of ten connections per core. These rows differ:
//
//	redis_rate, 256 connections  the same with a larger pool
//	rueidis                      bucket.lua, a minimal token bucket, through rueidis, which
//	                             pipelines the commands of concurrent callers
//	autopipeline                 bucket.lua through go-redis's experimental autopipeline; over a
//	                             network with full duplex, as its documentation advises
//
// Each figure has one source:
//
//	checks, latencies        the callers' clock; failed checks do not count as checks
//	Redis CPU per check      used_cpu_user + used_cpu_sys of INFO, before and after
//	allocations per check    runtime.MemStats of the whole process, rounded down
//	memory per key           in Redis used_memory of INFO, on a server of its own, without
//	                         connections; otherwise the heap after garbage collection, names
//	                         of keys included
//	one script               the server's slow log, which counts no network
//	instructions             valgrind's tool callgrind, on a redis-server of its own, without
//	                         the kernel's instructions
//
// A quantile is missing where fewer than three checks of a round took longer.
//
// # Networks
//
// Measures with a round trip of 0.5 or 2 ms, or with jitter, reach Redis through a
// proxy, which is another process of this program. It delays each direction by
// half of the round trip. With jitter, one chunk of bytes in twenty arrives up to
// 2 ms later, and the bytes behind it wait. Bytes never change their order.
// Connections open without delay.
//
// The round trip is the median time of a PING, measured by a thread that waits in
// poll. It includes the proxy's own work: the program shortens the delay until
// PINGs over 1, 16 and 256 connections take the right time. It fails if they stay
// more than 10 % off, which happens on a busy machine. The report has their times.
//
// While a measure uses a proxy, the command asks the kernel to keep idle processors awake,
// which only root may do. Otherwise a processor halts while all callers wait, and the proxy
// wakes up late. 16 callers 0.5 ms away then made 23 000 checks/s with penstock instead of
// 25 300, 24 900 with ulule/limiter instead of 26 100, and 23 700 with rueidis instead of
// 25 700. The head of the report says whether the kernel took the request. Measures on
// one machine leave the processors to the kernel. If these stay awake there, too, a lone
// caller takes 30 to 34 µs instead of 76 to 99, with penstock and redis_rate alike. Then 4 callers
// make 0.93 to 0.97 of rueidis's checks, instead of 1.1, and 8 callers 1.3 times
// ulule/limiter's, instead of 0.80 to 0.84.
//
// The proxy, the callers and Redis share the cores. A real network uses none. So
// peers that send each check by itself also pay for the proxy. The report has the
// proxy's CPU for each PING.
//
// # The bare script
//
// bare.lua is an exact token bucket for many keys that does nothing else. It shows how
// much of the cost is penstock's. It has no promise about changed limits, other
// algorithms, calls of several checks, returns, or clocks that step back.
//
// The measure of instructions compares it with penstock, for keys in known states:
//
//	fresh    there is no key
//	shallow  100 per minute, and few units are in use
//	slow     a unit takes 60 s to drain
//	busy     over a sixteenth of the burst is in use
//	denied   the whole burst is in use
//
// Each state is measured with calls that come together, and with a call that comes
// alone. Counts of instructions hardly depend on the machine: two runs differ by up to
// 2 %. Both scripts share Lua's garbage collector. Rows without a bar show that nothing
// else gets dearer. A batch of logs or of concurrent requests has fewer checks, because
// the limiter bounds its weight.
//
// The bare program is one goroutine that gathers up to 128 checks for bare.lua, with
// two calls in flight. It and penstock take turns in phases of 250 ms.
//
// # Processes
//
// Processes of this program that load one Redis together begin at the same time.
//
// In the Zipf run all contestants have the same limit, a fixed window of 1 s; see
// zipf.go. Units above the limit are counted in every window. Units below the
// limit are counted in the windows that denied a check.
//
// # What the figures do not say
//
//   - Callers, kernel and server share the cores. With a server of its own the
//     differences in throughput are smaller, until that server is busy. Then the
//     Redis CPU per check decides.
//   - A closed loop asks less while it waits. Its p99 is the p99 of a busy service,
//     not of an overloaded one.
//   - Contestants promise different things. In ulule/limiter, windows are fixed; in
//     httprate, two windows count. All units of go-limiter come back at once. The
//     script bucket.lua supports neither several limits per decision nor changed
//     limits. Asked three times, redis_rate charges earlier policies when a later one
//     denies.
//   - The slow-down from 1 000 to 1 000 000 keys flatters a contestant that is slow
//     with 1 000 keys. Compare the times, too.
//   - throttled fails when a key changes ten times during a check. Its checks per
//     second on one key are the checks that did not fail.
//   - The longest time of a script includes the time in which the system ran other
//     processes. The median does not.
//
// # Quick
//
// With -quick each contestant runs for an instant. The run fails if a contestant
// does not work or if allocations exceed their bar, and it ignores times. It is
// part of make check, so that the program keeps working.
package main
