package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// A point has the results with one number of callers on one network.
type point struct {
	measure *measure
	results [][]sample
}

// A plot is a figure that is drawn over callers.
type plot struct {
	figure figure
	file   string // its part of the file's name
}

var plots = []plot{{checksPerSecond, "throughput"}, {p99, "p99"}}

func (p plot) fileOf(n network) string { return fmt.Sprintf("curve-%s-%s.svg", n.name, p.file) }

// curves writes a section per network: its plots, and a table per figure, with
// a row per number of callers and a column per contestant.
func (r *report) curves(b *strings.Builder) {
	for _, n := range networks {
		points := r.pointsOn(n)
		if len(points) == 0 {
			continue
		}
		fmt.Fprintf(b, "\n## Redis over %s, token bucket, 10 000 keys\n", n.title())
		if r.draws() && len(points) > 1 {
			for _, p := range plots {
				fmt.Fprintf(b, "\n![%s over callers, %s](%s)\n", p.figure.name, n.title(), p.fileOf(n))
			}
		}
		for _, f := range curveFigures {
			if f == proxyCPU && n.roundTrip == 0 {
				continue
			}
			f.table(b, points)
		}
	}
}

func (r *report) pointsOn(n network) (some []point) {
	for _, p := range r.points {
		if p.measure.plan.network == n {
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

// draws reports whether there are plots: they need a file of the report, beside
// which they are written.
func (r *report) draws() bool { return r.options.out != "" && !r.options.quick }

// draw writes the plots.
func (r *report) draw() error {
	if !r.draws() {
		return nil
	}
	for _, n := range networks {
		points := r.pointsOn(n)
		if len(points) < 2 {
			continue
		}
		for _, p := range plots {
			file := filepath.Join(filepath.Dir(r.options.out), p.fileOf(n))
			if err := os.WriteFile(file, []byte(p.svg(n, points)), 0o644); err != nil {
				return err
			}
		}
	}
	return nil
}
