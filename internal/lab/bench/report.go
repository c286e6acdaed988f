package main

import (
	"fmt"
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"
)

// A report becomes two pages: RESULTS.md, and MEASUREMENTS.md with a table of the bars and a table of figures per measure.
type report struct {
	options      options
	begin        time.Time
	loadBefore   string
	redisVersion string
	asleep       error // why idle processors slept during measures over a network; nil: they did not
	proxies      []*proxy
	measured     []point
	verdicts     []verdict
	details      strings.Builder
}

func newReport(o options) *report {
	return &report{options: o, begin: time.Now(), loadBefore: loadAverage()}
}

// add adds the results of a measure.
func (r *report) add(m *measure, results [][]sample) {
	for _, b := range m.bars {
		v := m.value(results, b)
		r.verdicts = append(r.verdicts, verdict{m, results, b, v, b.met(v)})
	}
	r.measured = append(r.measured, point{m, results})
	if m.curve {
		return
	}
	columns := []string{"|", "| ---"}
	for _, f := range m.figures {
		columns[0] += " | " + f.name
		columns[1] += " | ---:"
	}
	fmt.Fprintf(&r.details, "\n## %s\n\n%s |\n%s |\n", m.title, columns[0], columns[1])
	for i, c := range m.contestants {
		fmt.Fprintf(&r.details, "| %s |", c.name)
		for _, f := range m.figures {
			fmt.Fprintf(&r.details, " %s%s |", f.format(medianOf(results[i], f)), f.span(results[i]))
		}
		r.details.WriteString("\n")
	}
}

// short writes a number with at most three digits, or as a whole number.
func short(v float64) string {
	if v >= 100 {
		return thousands(int(v))
	}
	return fmt.Sprintf("%.3g", v)
}

// valuesOf returns a figure of each round that has it.
func valuesOf(samples []sample, f figure) []float64 {
	var values []float64
	for _, s := range samples {
		if v, ok := s[f]; ok {
			values = append(values, v)
		}
	}
	return values
}

// medianOf returns the median of a figure over the rounds, or NaN if no round has it.
func medianOf(samples []sample, f figure) float64 { return median(valuesOf(samples, f)) }

// span returns the range of a figure over the rounds, or "" if it is a single number.
func (f figure) span(samples []sample) string {
	values := valuesOf(samples, f)
	if len(values) == 0 {
		return ""
	}
	if low, high := f.number(slices.Min(values)), f.number(slices.Max(values)); low != high {
		return " (" + low + " to " + high + ")"
	}
	return ""
}

func (f figure) format(v float64) string {
	if math.IsNaN(v) {
		return f.number(v)
	}
	return strings.TrimRight(f.number(v)+" "+f.unit, " ")
}

// number writes at least three digits, and separates thousands.
func (f figure) number(v float64) string {
	switch {
	case math.IsNaN(v):
		return "–"
	case f == allocations:
		return fmt.Sprintf("%.0f", v)
	case v >= 100:
		return thousands(int(v + 0.5))
	case v >= 10:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.2f", v)
}

func thousands(n int) string {
	text := fmt.Sprint(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + " " + text[i:]
	}
	return text
}

// measurements returns MEASUREMENTS.md.
func (r *report) measurements() string {
	var b strings.Builder
	b.WriteString("# Measurements\n\n")
	fmt.Fprintf(&b, "`%s`, %s, %.0f s.\n",
		r.options.command(), r.begin.UTC().Format(time.DateOnly), time.Since(r.begin).Seconds())
	fmt.Fprintf(&b, "%d cores, %s/%s, %s, Redis %s. Load average %s before, %s after.\n",
		runtime.NumCPU(), runtime.GOOS, runtime.GOARCH, runtime.Version(), r.redisVersion, r.loadBefore, loadAverage())
	fmt.Fprintf(&b, "%s.\n", strings.Join(peerVersions(), ", "))
	b.WriteString(r.whenIdle())
	if r.options.quick {
		b.WriteString("Quick: the times mean nothing.\n")
	}
	for _, p := range r.proxies {
		p.describe(&b)
	}
	b.WriteString("\nThe figures are medians over the rounds, with their range. A ratio divides penstock's figure by the other's in the\n" +
		"same round. [doc.go](doc.go) says how to read them.\n\n" +
		"| measure | figure | penstock | other | ratio | bar | |\n" +
		"| --- | --- | ---: | ---: | ---: | --- | --- |\n")
	r.summary(&b)
	if !r.options.quick {
		r.explain(&b)
	}
	r.curves(&b)
	b.WriteString(r.details.String())
	return b.String()
}

// keepAwake keeps idle processors awake until the result is called.
func (r *report) keepAwake() (rest func()) {
	awake, err := keepAwake()
	if err != nil {
		r.asleep = err
		return func() {}
	}
	return func() { _ = awake.Close() }
}

// whenIdle says whether idle processors slept while checks travelled over a network, if any did.
func (r *report) whenIdle() string {
	switch {
	case len(r.proxies) == 0:
		return ""
	case r.asleep != nil:
		return fmt.Sprintf("Idle processors slept during measures over a network (%v), so the proxy may have been late.\n", r.asleep)
	}
	return "During measures over a network, the program asked the kernel to keep idle processors awake.\n"
}

// peerVersions returns the modules that were measured, with versions.
func peerVersions() []string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return nil
	}
	var versions []string
	for _, name := range []string{
		"github.com/redis/go-redis/v9", "github.com/go-redis/redis_rate/v10", "github.com/throttled/throttled/v2",
		"github.com/ulule/limiter/v3", "github.com/redis/rueidis", "github.com/go-chi/httprate",
		"github.com/sethvargo/go-limiter", "golang.org/x/time",
	} {
		for _, dep := range info.Deps {
			if dep.Path == name {
				versions = append(versions, strings.TrimPrefix(name, "github.com/")+" "+dep.Version)
			}
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
