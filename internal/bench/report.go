package main

import (
	"cmp"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"
)

// A report becomes the file: a table of the bars, and one of figures per measure.
type report struct {
	options      options
	begin        time.Time
	loadBefore   string
	redisVersion string
	summary      []string // rows
	details      strings.Builder
	misses       []string // bars that are missed, and why
	missed       []string // firm bars
}

func newReport(o options) *report {
	return &report{options: o, begin: time.Now(), loadBefore: loadAverage()}
}

// add adds what a measure has found.
func (r *report) add(m *measure, results [][]sample) {
	for i, b := range m.bars {
		title := ""
		if i == 0 {
			title = m.title
		}
		r.addBar(title, m, results, b)
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

func (r *report) addBar(title string, m *measure, results [][]sample, b bar) {
	v := m.value(results, b)
	ours, theirs, ratio := m.sides(results, b)
	met, want := b.judge(v)
	verdict := "met"
	if !met {
		verdict = "**missed**"
		r.misses = append(r.misses, fmt.Sprintf("- **%s, %s**: %s, wanted %s. %s", m.title, b.figure.name, short(v), want, b.why))
	}
	r.summary = append(r.summary, fmt.Sprintf("| %s | %s | %s | %s | %s | %s | %s |", title, b.figure.name, ours, theirs, ratio, want, verdict))
	if b.firm && !met {
		r.missed = append(r.missed, fmt.Sprintf("%s: %s is %s; want %s", m.name, b.figure.name, short(v), want))
	}
}

// sides returns what stands on both sides of a bar: the medians of ours and of
// theirs with its name, and the median ratio.
func (m *measure) sides(results [][]sample, b bar) (ours, theirs, ratio string) {
	i := m.index(b.whose())
	if b.worst {
		i = m.worst(results, b)
	}
	ours = b.figure.format(medianOf(results[i], b.figure))
	if name := m.contestants[i].name; name != us {
		ours += ", " + name
	}
	if b.against == nil {
		return ours, "", ""
	}
	best := slices.MinFunc(b.against, func(x, y string) int {
		order := cmp.Compare(medianOf(results[m.index(x)], b.figure), medianOf(results[m.index(y)], b.figure))
		if b.figure.more {
			return -order
		}
		return order
	})
	theirs = b.figure.format(medianOf(results[m.index(best)], b.figure)) + ", " + best
	return ours, theirs, fmt.Sprintf("%.2f", m.value(results, b))
}

// value is what a bar looks at: the median over rounds of the figure, or of its
// ratio to the best of the others in the same round.
func (m *measure) value(results [][]sample, b bar) float64 {
	if b.worst {
		return medianOf(results[m.worst(results, b)], b.figure)
	}
	var values []float64
	for n, ours := range results[m.index(b.whose())] {
		v := ours[b.figure]
		if b.against != nil {
			v /= m.best(results, b, n)
		}
		values = append(values, v)
	}
	return median(values)
}

// worst returns who has the largest figure.
func (m *measure) worst(results [][]sample, b bar) int {
	worst := 0
	for i := range results {
		if medianOf(results[i], b.figure) > medianOf(results[worst], b.figure) {
			worst = i
		}
	}
	return worst
}

func (m *measure) best(results [][]sample, b bar, n int) float64 {
	var values []float64
	for _, name := range b.against {
		values = append(values, results[m.index(name)][n][b.figure])
	}
	if b.figure.more {
		return slices.Max(values)
	}
	return slices.Min(values)
}

func (m *measure) index(name string) int {
	return slices.IndexFunc(m.contestants, func(c contestant) bool { return c.name == name })
}

func (b bar) whose() string { return cmp.Or(b.who, us) }

// judge reports whether a value meets the bar, and says what the bar is.
func (b bar) judge(v float64) (met bool, want string) {
	met, want = v <= b.atMost, "at most "+short(b.atMost)
	if b.atLeast > 0 {
		met, want = v >= b.atLeast, "at least "+short(b.atLeast)
	}
	if b.aim > 0 {
		want += ", aim at " + short(b.aim)
	}
	return met, want
}

// short writes a bar, which has few digits.
func short(v float64) string {
	if v >= 100 {
		return thousands(int(v))
	}
	return fmt.Sprintf("%.3g", v)
}

func valuesOf(samples []sample, f figure) []float64 {
	var values []float64
	for _, s := range samples {
		values = append(values, s[f])
	}
	return values
}

func medianOf(samples []sample, f figure) float64 { return median(valuesOf(samples, f)) }

// span returns the range of a figure over the rounds.
func (f figure) span(samples []sample) string {
	values := valuesOf(samples, f)
	if low, high := f.number(slices.Min(values)), f.number(slices.Max(values)); low != high {
		return " (" + low + " to " + high + ")"
	}
	return ""
}

func (f figure) format(v float64) string { return strings.TrimRight(f.number(v)+" "+f.unit, " ") }

// number writes at least three digits, and groups those of large numbers.
func (f figure) number(v float64) string {
	switch {
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

// String returns the report in Markdown.
func (r *report) String() string {
	var b strings.Builder
	b.WriteString("# Benchmark\n\n")
	fmt.Fprintf(&b, "`%s`, %s, %.0f s.\n",
		r.options.command(), r.begin.UTC().Format(time.DateOnly), time.Since(r.begin).Seconds())
	fmt.Fprintf(&b, "%d cores, %s/%s, %s, Redis %s. Load average %s before, %s after.\n",
		runtime.NumCPU(), runtime.GOOS, runtime.GOARCH, runtime.Version(), r.redisVersion, r.loadBefore, loadAverage())
	fmt.Fprintf(&b, "%s.\n", strings.Join(peerVersions(), ", "))
	if r.options.quick {
		b.WriteString("Quick: the times mean nothing.\n")
	}
	b.WriteString("\nMedians over the rounds, with their range. A ratio is penstock's figure to the other's in the\n" +
		"same round; [doc.go](doc.go) says how to read them.\n\n" +
		"| measure | figure | penstock | other | ratio | bar | |\n" +
		"| --- | --- | ---: | ---: | ---: | --- | --- |\n")
	b.WriteString(strings.Join(r.summary, "\n"))
	b.WriteString("\n")
	if r.misses != nil && !r.options.quick {
		fmt.Fprintf(&b, "\n## Bars that are missed, and why\n\n%s\n", strings.Join(r.misses, "\n"))
	}
	b.WriteString(r.details.String())
	return b.String()
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

// loadAverage returns the machine's over one minute, which other work raises.
func loadAverage() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	first, _, _ := strings.Cut(string(text), " ")
	return first
}
