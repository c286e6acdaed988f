// RESULTS.md: the figures by which users decide, the cases in which penstock loses, and all tables.

package main

import (
	"errors"
	"fmt"
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A page has all that RESULTS.md says.
type page struct {
	options      options
	begin        time.Time
	loadBefore   string
	redisVersion string
	asleep       error // why idle processors slept during measures over a network; nil: they did not
	proxies      []*proxy
	results      []result
}

// A choice is a row of the first table: a figure of penstock beside those of peers.
type choice struct {
	text    string
	measure string // its name
	figure  figure
	peers   []string
}

var choices = []choice{
	{"Redis 2 ms away, 256 callers", "curve-2ms-256", checksPerSecond, []string{"redis_rate", "rueidis"}},
	{"Redis 2 ms away, 256 callers", "curve-2ms-256", p50, []string{"redis_rate", "rueidis"}},
	{"Redis 2 ms away, one caller far from its limits, `Ahead: 25`", "redis-ahead-1", p50, []string{"redis_rate", "rueidis"}},
	{"Redis 2 ms away, one caller far from its limits, `Ahead: 25`", "redis-ahead-1", p99, []string{"redis_rate", "rueidis"}},
	{"Redis 0.5 ms away, 8 callers", "curve-0.5ms-8", checksPerSecond, []string{"redis_rate", "rueidis"}},
	{"Redis 0.5 ms away, 64 callers", "curve-0.5ms-64", p99, []string{"redis_rate", "autopipeline"}},
	{"Redis on this machine, one caller", "curve-loopback-1", p50, []string{"redis_rate", "ulule/limiter"}},
	{"Redis on this machine, 256 callers", "curve-loopback-256", serverCPU, []string{"redis_rate", "rueidis"}},
	{"one key in Redis, 64 callers", "redis-hot", checksPerSecond, []string{"redis_rate", "rueidis"}},
	{"a key in Redis", "redis-bytes", bytesPerKey, []string{"redis_rate", "ulule/limiter"}},
	{"a check in memory", "memory", perCheck, []string{"go-limiter", "x/time/rate in a map"}},
	{"a key in memory", "memory-bytes", bytesPerKey, []string{"go-limiter", "x/time/rate in a map"}},
	{"the middleware, in memory", "middleware", perCheck, []string{"go-limiter", "httprate"}},
	{"the middleware, in memory", "middleware", allocations, []string{"go-limiter", "httprate"}},
}

func (p *page) String() string {
	var b strings.Builder
	b.WriteString("# Benchmark\n\n| | figure | penstock | peers |\n| --- | --- | ---: | --- |\n")
	for _, c := range choices {
		if i := slices.IndexFunc(p.results, func(r result) bool { return r.name == c.measure }); i >= 0 {
			b.WriteString(c.row(p.results[i]))
		}
	}
	p.circumstances(&b)
	p.losses(&b)
	p.tables(&b)
	return b.String()
}

// row returns the row of a choice. Figures of peers that are better than penstock's are bold.
func (c choice) row(r result) string {
	ours := r.median(us, c.figure)
	var peers []string
	for _, name := range c.peers {
		theirs := r.median(name, c.figure)
		text := c.figure.text(theirs)
		if c.figure.more && theirs > ours || !c.figure.more && theirs < ours {
			text = "**" + text + "**"
		}
		peers = append(peers, text+" "+name)
	}
	return fmt.Sprintf("| %s | %s | %s | %s |\n", c.text, c.figure.name, c.figure.text(ours), strings.Join(peers, "; "))
}

// circumstances writes how, when and where the figures were measured.
func (p *page) circumstances(b *strings.Builder) {
	b.WriteString("\nA **bold** figure of a peer is better than penstock's. rueidis and autopipeline are Redis clients that send a minimal script, `bucket.lua`.\n" +
		"All figures are medians over the rounds. [doc.go](doc.go) says how they are measured, and what they do not say.\n\n")
	fmt.Fprintf(b, "`%s` took %.0f s on %s. Redis, the network's proxy and all callers shared %d cores (%s/%s, %s, Redis %s).\n",
		p.options.command(), time.Since(p.begin).Seconds(), p.begin.UTC().Format(time.DateOnly),
		runtime.NumCPU(), runtime.GOOS, runtime.GOARCH, runtime.Version(), p.redisVersion)
	fmt.Fprintf(b, "The load average was %s before, and %s after. Peers: %s.\n", p.loadBefore, loadAverage(), strings.Join(peerVersions(), ", "))
	for _, proxy := range p.proxies {
		fmt.Fprintf(b, "Over %s, the median PING took %s.\n", proxy.network.title(), p50.text(float64(proxy.ping.Nanoseconds())/1e3))
	}
	switch {
	case len(p.proxies) == 0:
	case p.asleep != nil:
		fmt.Fprintf(b, "Idle processors slept during measures over a network (%v), so the proxy may have been late.\n", p.asleep)
	default:
		b.WriteString("During measures over a network, the program asked the kernel to keep idle processors awake.\n")
	}
}

// lossAbove is how many times as good as penstock's a peer's figure must be, to be named.
const lossAbove = 1.1

// comparedFigures are the figures in which a service or its operator would notice a loss.
var comparedFigures = []figure{checksPerSecond, p50, p99, serverCPU, perCheck, bytesPerKey}

// losses names each figure in which a peer is better by more than a tenth, with one item per table.
func (p *page) losses(b *strings.Builder) {
	head := "\n## Where penstock loses\n\nA peer is better by more than a tenth in these cases. The factor is the median of the ratios of each round.\n\n"
	for _, table := range p.byTitle() {
		var lost []string
		for _, r := range table {
			for _, f := range r.figures {
				if name, factor := r.bestPeer(f); factor > lossAbove && slices.Contains(comparedFigures, f) {
					lost = append(lost, fmt.Sprintf("%s %.2f (%s)", r.label(f), factor, name))
				}
			}
		}
		if lost != nil {
			item := fmt.Sprintf("- **%s**: %s. %s", table[0].title, strings.Join(lost, "; "), table[0].why)
			b.WriteString(head + strings.TrimSpace(item) + "\n")
			head = ""
		}
	}
}

// bestPeer returns the peer whose figure is best, and how many times as good as
// penstock's it is. One peer is the best of all rounds. The best of each round is often
// another one, by chance: if six equal peers vary by a tenth, it is an eighth better.
func (r result) bestPeer(f figure) (name string, factor float64) {
	for _, c := range r.contestants {
		if strings.HasPrefix(c.name, us) {
			continue
		}
		if v := r.ratio(c.name, f); v > factor { // not if v is NaN
			name, factor = c.name, v
		}
	}
	return name, factor
}

// tables writes a table for each title, with a row per figure and a column per contestant.
func (p *page) tables(b *strings.Builder) {
	for _, table := range p.byTitle() {
		fmt.Fprintf(b, "\n## %s\n\n| |", table[0].title)
		for _, c := range table[0].contestants {
			fmt.Fprintf(b, " %s |", c.name)
		}
		fmt.Fprintf(b, "\n| --- |%s\n", strings.Repeat(" ---: |", len(table[0].contestants)))
		for _, r := range table {
			for _, f := range r.figures {
				fmt.Fprintf(b, "| %s |", r.label(f))
				for _, c := range r.contestants {
					fmt.Fprintf(b, " %s |", f.text(r.median(c.name, f)))
				}
				b.WriteString("\n")
			}
		}
	}
}

// byTitle returns the results by tables.
func (p *page) byTitle() (tables [][]result) {
	for i, r := range p.results {
		if i == 0 || p.results[i-1].title != r.title {
			tables = append(tables, nil)
		}
		last := len(tables) - 1
		tables[last] = append(tables[last], r)
	}
	return tables
}

// label names a figure within a table.
func (m *measure) label(f figure) string {
	if m.at == "" {
		return f.name
	}
	return m.at + ", " + f.name
}

// overdone returns an error for each figure of penstock that is larger than its measure allows.
func (p *page) overdone() (err error) {
	for _, r := range p.results {
		for f, most := range r.most {
			if v := r.median(us, f); !(v <= most) {
				err = errors.Join(err, fmt.Errorf("%s: %s is %s; want at most %s", r.name, f.name, f.text(v), f.text(most)))
			}
		}
	}
	return err
}

// text writes at least three digits and the unit, and separates thousands.
func (f figure) text(v float64) string {
	decimals := 2
	switch {
	case math.IsNaN(v):
		return "–"
	case f == allocations || v >= 100:
		decimals = 0
	case v >= 10:
		decimals = 1
	}
	number := strconv.FormatFloat(v, 'f', decimals, 64)
	for i := len(number) - 3; decimals == 0 && i > 0; i -= 3 {
		number = number[:i] + " " + number[i:]
	}
	return strings.TrimRight(number+" "+f.unit, " ")
}

// peerVersions returns the modules that were measured, with versions.
func peerVersions() (versions []string) {
	peers := []string{
		"github.com/redis/go-redis/v9", "github.com/go-redis/redis_rate/v10", "github.com/redis/rueidis", "github.com/ulule/limiter/v3",
		"github.com/go-chi/httprate", "github.com/sethvargo/go-limiter", "golang.org/x/time",
	}
	info, _ := debug.ReadBuildInfo()
	for _, dep := range info.Deps {
		if slices.Contains(peers, dep.Path) {
			versions = append(versions, strings.TrimPrefix(dep.Path, "github.com/")+" "+dep.Version)
		}
	}
	return versions
}

// loadAverage returns the machine's load average over one minute.
func loadAverage() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	first, _, _ := strings.Cut(string(text), " ")
	return first
}
