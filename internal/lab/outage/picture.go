package main

import (
	"fmt"
	"html"
	"math"
	"strings"
	"time"
)

// The frame of the picture, in units of the SVG.
const (
	labels    = 84.0 // the width left of the columns
	column    = 196.0
	columnGap = 18.0
	row       = 116.0
	rowGap    = 54.0
	head      = 62.0
	foot      = 58.0
)

const pictureStyle = `<style>
text { font: 13px system-ui, sans-serif; fill: #24292f }
.name { font-weight: 600; font-size: 15px }
.small { font-size: 11px; font-weight: 400; fill: #57606a }
.down { fill: #ffd8cf } .slow { fill: #fff0c2 } .stalls { fill: #e4e0f5 }
.frame { fill: none; stroke: #d0d7de }
.answered { fill: #9bb8c4 } .admitted { fill: #0b6480 } .error { fill: #c8341a }
.limit { stroke: #24292f; stroke-dasharray: 4 3; fill: none }
.line { fill: none; stroke: #0b6480; stroke-width: 1.8 }
@media (prefers-color-scheme: dark) {
text { fill: #e6edf3 } .small { fill: #9aa5b1 }
.down { fill: #4a2219 } .slow { fill: #43381a } .stalls { fill: #322c4d }
.frame { stroke: #3d444d }
.answered { fill: #4f6e7a } .admitted { fill: #63c7e3 } .error { fill: #ff7b5c }
.limit { stroke: #e6edf3 }
.line { stroke: #63c7e3 }
}
</style>
`

// A chart is a row of the picture. It draws a contestant's seconds into a box whose left upper corner is (0, 0).
type chart struct {
	title, unit string
	marks       []mark
	draw        func(b *strings.Builder, seconds []figures)
}

// A mark is a value of the vertical axis.
type mark struct {
	y    float64
	text string
}

const mostAnswers = 50.0 // per second, on the axis

func height(v float64) float64 { return row * min(1, v/mostAnswers) }

// logHeight is the height of a time: from 1 ms to 3 s.
func logHeight(t time.Duration) float64 {
	ms := max(1, t.Seconds()*1e3)
	return row * min(1, math.Log10(ms)/math.Log10(3000))
}

var charts = []chart{
	{
		"Answers", "per second",
		[]mark{{row, "0"}, {row - height(20), "20"}, {row - height(40), "40"}},
		func(b *strings.Builder, seconds []figures) {
			bars(b, seconds, "answered", func(f figures) (low, high float64) { return 0, float64(f.admitted + f.denied) })
			bars(b, seconds, "error", func(f figures) (low, high float64) { return float64(f.admitted + f.denied), float64(f.sent) })
		},
	},
	{
		"Admitted", "per second",
		[]mark{{row, "0"}, {row - height(20), "20"}, {row - height(40), "40"}},
		func(b *strings.Builder, seconds []figures) {
			bars(b, seconds, "admitted", func(f figures) (low, high float64) { return 0, float64(f.admitted) })
			fmt.Fprintf(b, `<path class="limit" d="M0 %.1fh%.0f"/>`, row-height(perSecond), column)
		},
	},
	{
		"Latency", "of the slowest in each second",
		[]mark{{row, "1 ms"}, {row - logHeight(10*time.Millisecond), "10 ms"}, {row - logHeight(100*time.Millisecond), "100 ms"}, {row - logHeight(time.Second), "1 s"}},
		func(b *strings.Builder, seconds []figures) {
			var path strings.Builder
			for i, f := range seconds {
				x := column * (float64(i) + 0.5) / float64(len(seconds))
				fmt.Fprintf(&path, "%s%.1f %.1f", map[bool]string{true: "M", false: "L"}[i == 0], x, row-logHeight(f.p99))
			}
			fmt.Fprintf(b, `<path class="line" d="%s"/>`, path.String())
		},
	},
}

// bars draws a bar for each second.
func bars(b *strings.Builder, seconds []figures, class string, of func(figures) (low, high float64)) {
	wide := column / float64(len(seconds))
	var path strings.Builder
	for i, f := range seconds {
		low, high := of(f)
		if high > low {
			fmt.Fprintf(&path, "M%.1f %.1fV%.1fh%.1fV%.1fz", float64(i)*wide+0.3, row-height(low), row-height(high), wide-0.6, row-height(low))
		}
	}
	fmt.Fprintf(b, `<path class="%s" d="%s"/>`, class, path.String())
}

// picture has a column for each contestant, and a row for each chart.
func picture(p plan, results [][]answer) string {
	width := labels + float64(len(contestants))*(column+columnGap)
	bottom := head + float64(len(charts))*(row+rowGap)
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0f %.0f" role="img">`+"\n<title>%s</title>\n%s",
		width, bottom+foot-rowGap, "Four rate limiters while Redis is killed, slow, back, and stalls", pictureStyle)
	for i, c := range contestants {
		left := labels + float64(i)*(column+columnGap)
		fmt.Fprintf(&b, `<text class="name" x="%.0f" y="20">%s</text>`+"\n", left, html.EscapeString(c.name))
		seconds := perSecondOf(results[i], p.end)
		for j, chart := range charts {
			drawChart(&b, p, chart, seconds, left, head+float64(j)*(row+rowGap), i == 0)
		}
	}
	legend(&b, p, bottom)
	b.WriteString("</svg>\n")
	return b.String()
}

func drawChart(b *strings.Builder, p plan, c chart, seconds []figures, left, top float64, first bool) {
	x := func(at time.Duration) float64 { return column * float64(at) / float64(p.end) }
	fmt.Fprintf(b, `<g transform="translate(%.0f %.0f)"><rect class="down" x="%.1f" width="%.1f" height="%.0f"/><rect class="slow" x="%.1f" width="%.1f" height="%.0f"/><rect class="stalls" x="%.1f" width="%.1f" height="%.0f"/>`,
		left, top, x(p.killed), x(p.started-p.killed), row, x(p.started), x(p.healed-p.started), row, x(p.stalls), x(p.end-p.stalls), row)
	c.draw(b, seconds)
	fmt.Fprintf(b, `<rect class="frame" width="%.0f" height="%.0f"/>`, column, row)
	for _, at := range []time.Duration{0, p.killed, p.started, p.healed, p.stalls, p.end} {
		fmt.Fprintf(b, `<text class="small" x="%.1f" y="%.0f" text-anchor="middle">%g</text>`, x(at), row+14, at.Seconds())
	}
	if first {
		fmt.Fprintf(b, `<text class="name" x="-%.0f" y="-12">%s <tspan class="small">%s</tspan></text>`, labels-2, c.title, c.unit)
		for _, m := range c.marks {
			fmt.Fprintf(b, `<text class="small" x="-6" y="%.1f" text-anchor="end">%s</text>`, m.y+4, m.text)
		}
	}
	b.WriteString("</g>\n")
}

func legend(b *strings.Builder, p plan, bottom float64) {
	x := labels
	for _, item := range []struct{ class, text string }{
		{"answered", "answered"}, {"error", "error, or no answer"}, {"admitted", "admitted"},
		{"down", fmt.Sprintf("Redis killed, %g s to %g s", p.killed.Seconds(), p.started.Seconds())},
		{"slow", fmt.Sprintf("Redis %d ms away, %g s to %g s", p.delay.Milliseconds(), p.started.Seconds(), p.healed.Seconds())},
		{"stalls", fmt.Sprintf("stalls of %d ms, from %g s", p.stall.Milliseconds(), p.stalls.Seconds())},
	} {
		fmt.Fprintf(b, `<rect class="%s" x="%.0f" y="%.0f" width="12" height="12"/><text x="%.0f" y="%.0f">%s</text>`+"\n",
			item.class, x, bottom-16, x+18, bottom-5, item.text)
		x += 34 + 6.6*float64(len(item.text))
	}
	fmt.Fprintf(b, `<path class="limit" d="M%.0f %.0fh16"/><text x="%.0f" y="%.0f">limit</text>`+"\n", x, bottom-10, x+22, bottom-5)
}
