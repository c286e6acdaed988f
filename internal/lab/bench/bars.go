// Bars: the figures that a measure has to reach, and whether it reaches them.

package main

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
)

// A verdict says whether a measure meets a bar.
type verdict struct {
	measure *measure
	results [][]sample
	bar     bar
	value   float64
	met     bool
}

// together returns the verdicts by rows of the summary. Verdicts of the same group,
// figure and bar share a row.
func (r *report) together() (rows [][]verdict) {
	for _, v := range r.verdicts {
		i := slices.IndexFunc(rows, func(row []verdict) bool {
			return v.bar.group != "" && row[0].bar.group == v.bar.group && row[0].bar.figure == v.bar.figure && row[0].bar.want() == v.bar.want()
		})
		if i < 0 {
			rows = append(rows, []verdict{v})
		} else {
			rows[i] = append(rows[i], v)
		}
	}
	return rows
}

// summary writes a row per bar or group of bars. A group shows the worst of them.
func (r *report) summary(b *strings.Builder) {
	for _, row := range r.together() {
		worst := slices.MaxFunc(row, func(x, y verdict) int { return cmp.Compare(x.bar.excess(x.value), y.bar.excess(y.value)) })
		missed := 0
		for _, v := range row {
			if !v.met {
				missed++
			}
		}
		verdict := "met"
		switch {
		case len(row) > 1 && missed > 0:
			verdict = fmt.Sprintf("**missed** in %d of %d", missed, len(row))
		case len(row) > 1:
			verdict = fmt.Sprintf("met in all %d", len(row))
		case missed > 0:
			verdict = "**missed**"
		}
		title := worst.measure.title
		if len(row) > 1 {
			title = row[0].bar.group + "; the worst: " + title
		}
		ours, theirs, ratio := worst.measure.sides(worst.results, worst.bar)
		fmt.Fprintf(b, "| %s | %s | %s | %s | %s | %s | %s |\n",
			title, worst.bar.figure.name, ours, theirs, ratio, worst.bar.want(), verdict)
	}
}

// explain writes which bars are missed, and why.
func (r *report) explain(b *strings.Builder) {
	title := "\n## Bars that are missed, and why\n\n"
	for _, row := range r.together() {
		var missed []string
		for _, v := range row {
			if !v.met {
				missed = append(missed, fmt.Sprintf("%s %s", v.subject(), short(v.value)))
			}
		}
		if missed != nil {
			first := row[0].bar
			fmt.Fprintf(b, "%s- **%s, wanted %s**: %s. %s\n", title, first.figure.name, first.want(), strings.Join(missed, "; "), first.why)
			title = ""
		}
	}
}

// subject returns what was judged: the measure, and the contestant if the bar names one.
func (v *verdict) subject() string {
	if v.bar.who == "" {
		return v.measure.title
	}
	return v.measure.title + ", " + v.bar.who
}

// firmMisses returns the firm bars that are missed.
func (r *report) firmMisses() (missed []string) {
	for _, v := range r.verdicts {
		if v.bar.firm && !v.met {
			missed = append(missed, fmt.Sprintf("%s: %s is %s; want %s", v.measure.name, v.bar.figure.name, short(v.value), v.bar.want()))
		}
	}
	return missed
}

// sides returns the texts of a row: our median, the median and the name of the best
// other contestant, and the median ratio to it.
func (m *measure) sides(results [][]sample, b bar) (ours, theirs, quotient string) {
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
	best, ratio := m.best(results, b)
	theirs = b.figure.format(medianOf(results[m.index(best)], b.figure)) + ", " + best
	return ours, theirs, fmt.Sprintf("%.2f", ratio)
}

// value returns the number that a bar judges. It is the median of the figure over
// the rounds. If the bar compares contestants, it is the ratio to the best of them.
func (m *measure) value(results [][]sample, b bar) float64 {
	switch {
	case b.worst:
		return medianOf(results[m.worst(results, b)], b.figure)
	case b.against == nil:
		return medianOf(results[m.index(b.whose())], b.figure)
	}
	_, ratio := m.best(results, b)
	return ratio
}

// best returns the best of the contestants with which a bar compares, and the ratio to
// it: the median of the ratios of each round. One contestant is the best of all rounds.
// The best of each round is often another one, by chance. If six equal peers vary
// by a tenth, the best of each round is an eighth better than any of them.
func (m *measure) best(results [][]sample, b bar) (name string, ratio float64) {
	for i, against := range b.against {
		var ratios []float64
		for n, theirs := range results[m.index(against)] {
			v, ok := results[m.index(b.whose())][n][b.figure]
			w, has := theirs[b.figure]
			if ok && has {
				ratios = append(ratios, v/w)
			}
		}
		if r := median(ratios); i == 0 || math.IsNaN(ratio) || b.excess(r) > b.excess(ratio) {
			name, ratio = against, r
		}
	}
	return name, ratio
}

// worst returns the index of the contestant with the largest figure.
func (m *measure) worst(results [][]sample, b bar) int {
	worst := 0
	for i := range results {
		if medianOf(results[i], b.figure) > medianOf(results[worst], b.figure) {
			worst = i
		}
	}
	return worst
}

func (m *measure) index(name string) int {
	return slices.IndexFunc(m.contestants, func(c contestant) bool { return c.name == name })
}

func (b bar) whose() string { return cmp.Or(b.who, us) }

// met reports whether a value meets the bar.
func (b bar) met(v float64) bool {
	if b.atLeast > 0 {
		return v >= b.atLeast
	}
	return v <= b.atMost
}

// excess returns a number that grows as the value gets worse.
func (b bar) excess(v float64) float64 {
	if b.atLeast > 0 {
		return b.atLeast / v
	}
	return v / b.atMost
}

// want returns the bar as text, such as "at most 1.1".
func (b bar) want() string {
	if b.atLeast > 0 {
		return "at least " + short(b.atLeast)
	}
	return "at most " + short(b.atMost)
}
