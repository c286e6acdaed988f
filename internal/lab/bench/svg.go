package main

import (
	"fmt"
	"html"
	"math"
	"strings"
)

// The size of a plot, and the frame of its lines.
const (
	plotWidth, plotHeight       = 820, 380
	left, right, top, bottom    = 84.0, 590.0, 36.0, 336.0
	legendX, legendY, legendRow = 612.0, 60.0, 22.0
)

// These colours differ clearly on light and on dark backgrounds. The first one is
// penstock's.
var plotColours = []string{"#1f77d0", "#7fb2e5", "#d9480f", "#f0a36b", "#2b9348", "#9b51c9", "#8a8f98", "#c2a200"}

const plotStyle = `<style>
text { font: 13px system-ui, sans-serif; fill: #24292f }
.grid { stroke: #d0d7de }
.line { fill: none; stroke-width: 1.5 }
.ours { stroke-width: 3 }
@media (prefers-color-scheme: dark) { text { fill: #e6edf3 } .grid { stroke: #3d444d } }
</style>
`

// svg draws a plot, one line per contestant. The vertical axis is
// logarithmic. The horizontal axis has the same step between two numbers of callers.
func (p plot) svg(points []point) string {
	var b strings.Builder
	n := p.network
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" role="img">`+"\n<title>%s over callers, %s</title>\n%s",
		plotWidth, plotHeight, p.figure.name, n.title(), plotStyle)
	fmt.Fprintf(&b, `<text x="%.0f" y="20">%s (%s), Redis over %s</text>`+"\n", left, p.figure.name, p.figure.unit, n.title())
	low, high := p.range10(points)
	y := func(v float64) float64 {
		return bottom - (bottom-top)*(math.Log10(v)-low)/(high-low)
	}
	for e := low; e <= high; e++ {
		at := y(math.Pow(10, e))
		fmt.Fprintf(&b, `<path class="grid" d="M%.1f %.1fH%.1f"/><text x="%.1f" y="%.1f" text-anchor="end">%s</text>`+"\n",
			left, at, right, left-8, at+4, thousands(int(math.Pow(10, e))))
	}
	x := func(i int) float64 { return left + (right-left)*float64(i)/float64(len(points)-1) }
	for i, at := range points {
		fmt.Fprintf(&b, `<text x="%.1f" y="%.1f" text-anchor="middle">%s</text>`+"\n", x(i), bottom+20, thousands(at.measure.plan.callers))
	}
	fmt.Fprintf(&b, `<text x="%.1f" y="%.1f" text-anchor="middle">callers</text>`+"\n", (left+right)/2, bottom+38)
	for j, c := range points[0].measure.contestants {
		colour, class := plotColours[j%len(plotColours)], "line"
		if c.name == us {
			class = "line ours"
		}
		at := legendY + legendRow*float64(j)
		fmt.Fprintf(&b, `<path class="%s" stroke="%s" d="M%.0f %.0fh16"/><text x="%.0f" y="%.0f">%s</text>`+"\n",
			class, colour, legendX, at-4, legendX+22, at, html.EscapeString(c.name))
		fmt.Fprintf(&b, `<path class="%s" stroke="%s" d="%s"/>`+"\n", class, colour, p.line(points, j, x, y))
	}
	b.WriteString("</svg>\n")
	return b.String()
}

// line returns the path of a contestant. It leaves out points that were not measured.
func (p plot) line(points []point, contestant int, x func(int) float64, y func(float64) float64) string {
	var path strings.Builder
	for i, at := range points {
		if v := medianOf(at.results[contestant], p.figure); v > 0 {
			command := "L"
			if path.Len() == 0 {
				command = "M"
			}
			fmt.Fprintf(&path, "%s%.1f %.1f", command, x(i), y(v))
		}
	}
	return path.String()
}

// range10 returns the powers of ten between which all values lie.
func (p plot) range10(points []point) (low, high float64) {
	low, high = math.Inf(1), math.Inf(-1)
	for _, at := range points {
		for _, samples := range at.results {
			if v := medianOf(samples, p.figure); v > 0 {
				low, high = min(low, math.Floor(math.Log10(v))), max(high, math.Ceil(math.Log10(v)))
			}
		}
	}
	return low, max(high, low+1)
}
