package main

import (
	"embed"
	"fmt"
	"runtime"
	"strings"
	"time"
)

//go:embed penstock.go penstock_ahead.go redis_rate.go ulule.go httprate.go
var programs embed.FS

// report returns the page: the picture, the table and the programs.
func report(p plan, results [][]answer, version string) string {
	var b strings.Builder
	fmt.Fprintf(&b, `# An outage of Redis

%s writes this page and its picture.

![Answers, admitted requests and the slowest answer of each second, for four rate limiters](outage.svg)

Two instances share a limit of %d requests per second through Redis. One client sends %d requests per second, to both in turn. Redis is
killed at second %g and started again at second %g, %d ms away. At second %g the delay ends. From second %g on, the client sends only %d requests
per second, which the limit admits, and the network to Redis stalls for %d ms in each second. All limiters run at the same time, with the same Redis %s, on %d CPUs with %s.

- An error is a status of 500 or above, or no answer within %g s.
- httprate counts in sliding windows, ulule/limiter in fixed ones, and penstock and redis_rate in buckets.
- A call of penstock waits 50 ms for Redis at most. So it decides without Redis while Redis is %d ms away.
- When Redis dies, each instance of penstock begins with a full share, although Redis had counted the units as used. So up to one more burst
  passes in the first second.
- With Ahead, penstock admits a client that is far from its limit at once, so that this client does not notice a stall. Near the limit it asks Redis, as without Ahead.
- The client waits for no answer before it sends the next request. So slow answers do not reduce the load.

`, "`make outage`", perSecond, offered, p.killed.Seconds(), p.started.Seconds(), p.delay.Milliseconds(), p.healed.Seconds(),
		p.stalls.Seconds(), calm, p.stall.Milliseconds(), version, runtime.NumCPU(), runtime.Version(), patience.Seconds(), p.delay.Milliseconds())
	b.WriteString("| | limiter | admitted per second | denied | errors | median | 99 % |\n|---|---|---:|---:|---:|---:|---:|\n")
	for _, part := range p.parts() {
		for i, c := range contestants {
			f := in(results[i], part)
			fmt.Fprintf(&b, "| %s | %s | %.1f | %d | %d | %s | %s |\n", part.name, c.name, float64(f.admitted)/f.seconds, f.denied, f.errors, milliseconds(f.median), milliseconds(f.p99))
		}
	}
	b.WriteString("\n## The programs\n")
	for _, c := range contestants {
		source, _ := programs.ReadFile(c.file) // it is embedded
		fmt.Fprintf(&b, "\n### %s\n\n```go\n%s```\n", c.name, source)
	}
	return b.String()
}

func milliseconds(d time.Duration) string { return fmt.Sprintf("%.1f ms", d.Seconds()*1e3) }
