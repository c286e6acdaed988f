package main

import (
	"fmt"
	"slices"
	"strings"
)

// A point has the results of a measure, such as one number of callers on one network.
type point struct {
	measure *measure
	results [][]sample
}

// A plot is a figure on a network, drawn over callers.
type plot struct {
	figure  figure
	network network
}

var plots = []plot{{checksPerSecond, near}, {checksPerSecond, far}}

func (p plot) file() string { return fmt.Sprintf("curve-%s.svg", p.network.name) }

func (n network) plotted() bool {
	return slices.ContainsFunc(plots, func(p plot) bool { return p.network == n })
}

// curves writes a section per network: a table per figure, with a row per number of
// callers and a column per contestant.
func (r *report) curves(b *strings.Builder) {
	for _, n := range networks {
		points := r.pointsOn(n)
		if len(points) == 0 {
			continue
		}
		fmt.Fprintf(b, "\n## Redis over %s, token bucket, 10 000 keys\n", n.title())
		for _, f := range judgedOn(n) {
			f.table(b, points)
		}
	}
}

// pointsOn returns the points of the curve on a network.
func (r *report) pointsOn(n network) (some []point) {
	for _, p := range r.measured {
		if p.measure.curve && p.measure.plan.network == n {
			some = append(some, p)
		}
	}
	return some
}

// table writes the medians of a figure.
func (f figure) table(b *strings.Builder, points []point) {
	fmt.Fprintf(b, "\n**%s**\n\n| callers |", strings.TrimSuffix(f.name+", "+f.unit, ", "))
	contestants := points[0].measure.contestants
	for _, c := range contestants {
		fmt.Fprintf(b, " %s |", c.name)
	}
	fmt.Fprintf(b, "\n| ---: |%s\n", strings.Repeat(" ---: |", len(contestants)))
	for _, p := range points {
		fmt.Fprintf(b, "| %s |", thousands(p.measure.plan.callers))
		for _, samples := range p.results {
			fmt.Fprintf(b, " %s |", f.number(medianOf(samples, f)))
		}
		b.WriteString("\n")
	}
}

// drawings returns the plots, by the names of their files. A plot needs two points.
func (r *report) drawings() map[string]string {
	files := make(map[string]string)
	for _, p := range plots {
		if points := r.pointsOn(p.network); len(points) > 1 {
			files[p.file()] = p.svg(points)
		}
	}
	return files
}
