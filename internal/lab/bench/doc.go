// Command bench measures penstock against its peers, side by side in one run.
//
//	make bench
//	go -C internal/lab run ./bench -only memory -rounds 3
//	go -C internal/lab run ./bench -only 'curve-2ms-(64|256)'
//
// -only selects measures by their names, such as curve-loopback-256 or
// redis-ahead-64. It is a regular expression. The whole takes about ten minutes. With -o the
// command writes RESULTS.md: the figures by which users decide, the cases in which
// penstock loses, and all tables.
//
// The command starts its own redis-server on a free port of the loopback address. It is in
// a module of its own, so that penstock's go.mod does not name the peers.
//
// # How it measures
//
// The contestants of a measure take turns, round after round, so that a slow
// machine slows all of them down. What counts is the ratio of two contestants in
// the same round. The tables have the median over the rounds: five, or ten where
// contestants differ by less than rounds do. Absolute figures
// depend on the machine and its other work, so the page has the load average.
//
// Callers are a closed loop: each asks, waits for the answer, and asks again at
// once, for a random key. The limits admit every check, so that every contestant
// writes, which costs more than a denial. Before a measurement, each contestant
// must admit exactly five of ten checks under a small limit. Then it runs without
// measurement, once per key or for a set time, so that connections, scripts and
// states exist.
//
// The middleware keeps the header values that it has sent lately, and nearly all
// responses of these measures repeat a value. A response with new numbers takes a
// fifth more instructions and a third allocation: package middleware has the benchmark
// Handler/ip-new.
//
// Peers are used as their READMEs show, with the default options. Each contestant
// on go-redis, penstock included, has its own client with default options: a pool
// of ten connections per core. These columns differ:
//
//	redis_rate, 256 connections  the same with a larger pool
//	rueidis                      bucket.lua, a minimal token bucket, through rueidis, which
//	                             pipelines the commands of concurrent callers
//	autopipeline                 bucket.lua through go-redis's experimental autopipeline; over a
//	                             network with full duplex, as its documentation advises
//
// Each figure has one source:
//
//	checks, latencies        the callers' clock
//	Redis CPU per check      used_cpu_user + used_cpu_sys of INFO, before and after
//	allocations per check    runtime.MemStats of the whole process, rounded down
//	memory per key           in Redis used_memory of INFO, on a server of its own, without
//	                         connections; otherwise the heap after garbage collection, names
//	                         of keys included
//
// A quantile is missing where fewer than three checks of a round took longer. A contestant
// of which a hundredth of the checks fail ends the run, and so does penstock if it decides a
// thousandth of the checks without Redis.
//
// # Networks
//
// Measures with a round trip of 0.5 or 2 ms reach Redis through a
// proxy, which is another process of this program. It delays each direction by
// half of the round trip. Bytes never change their order. Connections open without delay.
// The round trip is the median time of a PING, and includes the proxy's own work: the
// program changes the delay until PINGs take the right time. It fails if they stay
// more than 10 % off, which happens on a busy machine. The page has their times, and says
// whether the kernel kept idle processors awake, which only root may ask for.
//
// The proxy, the callers and Redis share the cores. A real network uses none. So
// peers that send each check by itself also pay for the proxy.
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
//     limits. x/time/rate in a map never forgets a key.
//   - Clients that ask ahead are far from their limits. Near its limit a client waits for
//     Redis, as without Ahead.
//
// With -quick each contestant runs for an instant. The run fails if a contestant
// does not work or if penstock allocates more than its measure allows, and it ignores times.
package main
