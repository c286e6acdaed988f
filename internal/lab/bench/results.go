// RESULTS.md: the figures by which users decide, and the plots.

package main

import (
	"cmp"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"time"
)

const (
	resultsFile      = "RESULTS.md"
	measurementsFile = "MEASUREMENTS.md"
)

// A choice is a row of the table in RESULTS.md: a figure of penstock beside those of peers.
type choice struct {
	text    string
	measure string // its name
	figure  figure
	who     string // the contestant; empty: penstock
	peers   []string
}

var choices = []choice{
	{"Redis 2 ms away, 256 callers", "curve-2ms-256", checksPerSecond, "", []string{"redis_rate", "rueidis"}},
	{"Redis 2 ms away, 256 callers", "curve-2ms-256", p50, "", []string{"redis_rate", "rueidis"}},
	{"Redis 0.5 ms away, 8 callers", "curve-0.5ms-8", checksPerSecond, "", []string{"redis_rate", "rueidis"}},
	{"Redis 0.5 ms away, 64 callers", "curve-0.5ms-64", p99, "", []string{"redis_rate", "autopipeline"}},
	{"Redis on this machine, one caller", "curve-loopback-1", p50, "", []string{"redis_rate", "ulule/limiter"}},
	{"Redis on this machine, 256 callers", "curve-loopback-256", serverCPU, "", []string{"redis_rate", "rueidis"}},
	{"three policies for one request, one caller", "policies", p50, "three policies", []string{"redis_rate, asked three times"}},
	{"one key in Redis, 64 callers", "redis-hot", checksPerSecond, "", []string{"redis_rate", "rueidis"}},
	{"a key in Redis", "redis-bytes", bytesPerKey, "", []string{"redis_rate", "ulule/limiter"}},
	{"a check in memory", "memory", perCheck, "", []string{"go-limiter", "x/time/rate in a map"}},
	{"a key in memory", "memory-bytes", bytesPerKey, "", []string{"go-limiter", "x/time/rate in a map"}},
	{"the middleware, in memory", "middleware", perCheck, "", []string{"go-limiter", "httprate"}},
	{"the middleware, in memory", "middleware", allocations, "", []string{"go-limiter", "httprate"}},
	{"a denial that the instance remembers", "denials", perCheck, "", nil},
}

// results returns RESULTS.md. The table leaves out what was not measured.
func (r *report) results() string {
	var b strings.Builder
	b.WriteString("# Benchmark\n\n| | figure | penstock | peers |\n| --- | --- | ---: | --- |\n")
	for _, c := range choices {
		if i := slices.IndexFunc(r.measured, func(p point) bool { return p.measure.name == c.measure }); i >= 0 {
			b.WriteString(c.row(r.measured[i]))
		}
	}
	fmt.Fprintf(&b, "\nA **bold** figure of a peer is better than penstock's. rueidis and autopipeline are clients of Redis that send a minimal script, `bucket.lua`.\n"+
		"Redis, the network's proxy and all callers shared %d cores (%s/%s, %s, Redis %s) on %s.\n%s"+
		"[MEASUREMENTS.md](MEASUREMENTS.md) has all figures with their ranges, the bars, and the reasons why bars are missed.\n",
		runtime.NumCPU(), runtime.GOOS, runtime.GOARCH, runtime.Version(), r.redisVersion, r.begin.UTC().Format(time.DateOnly), r.whenIdle())
	r.losses(&b)
	for _, p := range plots {
		if len(r.pointsOn(p.network)) > 1 {
			fmt.Fprintf(&b, "\n![%s over callers, Redis over %s](%s)\n", p.figure.name, p.network.title(), p.file())
		}
	}
	return b.String()
}

// row returns the row of a choice, or "" if our contestant did not run.
func (c choice) row(p point) string {
	ours := p.medianOf(cmp.Or(c.who, us), c.figure)
	if ours == "" {
		return ""
	}
	var peers []string
	for _, name := range c.peers {
		theirs := p.medianOf(name, c.figure)
		if theirs == "" {
			continue
		}
		if p.better(name, cmp.Or(c.who, us), c.figure) {
			theirs = "**" + theirs + "**"
		}
		peers = append(peers, theirs+" "+name)
	}
	return fmt.Sprintf("| %s | %s | %s | %s |\n", c.text, c.figure.name, ours, strings.Join(peers, "; "))
}

// medianOf returns the median of a contestant's figure as text, or "" if it did not run.
func (p point) medianOf(name string, f figure) string {
	i := p.measure.index(name)
	if i < 0 {
		return ""
	}
	return f.format(medianOf(p.results[i], f))
}

// better reports whether the median of one contestant is better than the median of another.
func (p point) better(name, than string, f figure) bool {
	a, b := medianOf(p.results[p.measure.index(name)], f), medianOf(p.results[p.measure.index(than)], f)
	if f.more {
		return a > b
	}
	return a < b
}
