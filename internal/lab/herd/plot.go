// The plots: requests and successes of each second, a panel for each kind.

package main

import (
	"fmt"
	"math"
	"strings"
)

const (
	plotWidth   = 860
	plotLeft    = 200 // left end of the time axis
	plotRight   = 20
	panelHeight = 84
	panelGap    = 14
	plotTop     = 34
	plotBottom  = 34
	maxSeconds  = 150 // longer tails are cut off; the panel says when all were served
)

// plot draws results on common axes: seconds, and the logarithm of counts.
func plot(results []result) string {
	seconds, top := 0, 0
	for i := range results {
		seconds = max(seconds, min(len(results[i].seconds), maxSeconds))
		for _, s := range results[i].seconds {
			top = max(top, s.requests)
		}
	}
	a := axes{seconds: float64(seconds), decades: math.Ceil(math.Log10(float64(max(top, 10))))}
	height := plotTop + len(results)*(panelHeight+panelGap) + plotBottom
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12">`+"\n", plotWidth, height)
	fmt.Fprintf(&b, `<rect width="%d" height="%d" fill="#fff"/>`+"\n", plotWidth, height)
	fmt.Fprintf(&b, `<text x="%d" y="20" fill="#c2410c">requests per second</text><text x="%d" y="20" fill="#1d4ed8">successes per second</text>`+
		`<text x="%d" y="20" fill="#555">dashed: the limit</text>`+"\n", plotLeft, plotLeft+150, plotLeft+310)
	for i := range results {
		a.panel(&b, &results[i], float64(plotTop+i*(panelHeight+panelGap)))
	}
	for s := 0; s <= seconds; s += 20 {
		fmt.Fprintf(&b, `<text x="%.1f" y="%d" text-anchor="middle" fill="#555">%d s</text>`+"\n", a.x(float64(s)), height-plotBottom+14, s)
	}
	b.WriteString("</svg>\n")
	return b.String()
}

// axes map seconds and counts to the plot.
type axes struct{ seconds, decades float64 }

func (a axes) x(second float64) float64 {
	return plotLeft + second/a.seconds*(plotWidth-plotLeft-plotRight)
}

// y returns the distance of a count from the top of a panel. A count of 0 is at the bottom.
func (a axes) y(count int) float64 {
	return panelHeight * (1 - math.Log10(float64(count)+1)/math.Log10(math.Pow(10, a.decades)+1))
}

// panel draws one result.
func (a axes) panel(b *strings.Builder, r *result, top float64) {
	fmt.Fprintf(b, `<g transform="translate(0 %.0f)">`+"\n", top)
	for count := 1; count <= int(math.Pow(10, a.decades)); count *= 10 {
		dash, color := "", "#e5e5e5"
		if count == rate {
			dash, color = ` stroke-dasharray="4 3"`, "#888"
		}
		fmt.Fprintf(b, `<path d="M%d %.1fH%d" stroke="%s"%s/><text x="%d" y="%.1f" text-anchor="end" fill="#555" font-size="9">%d</text>`+"\n",
			plotLeft, a.y(count), plotWidth-plotRight, color, dash, plotLeft-4, a.y(count)+3, count)
	}
	note := fmt.Sprintf("all served after %.0f s", r.done.Seconds())
	fmt.Fprintf(b, `<text x="10" y="20" font-weight="bold">%s</text><text x="10" y="38" fill="#555">%s</text><text x="10" y="54" fill="#555">%.2f requests per success</text>`+"\n",
		r.kind, note, r.perSuccess(r.requests))
	a.steps(b, r, "#c2410c", func(s second) int { return s.requests })
	a.steps(b, r, "#1d4ed8", func(s second) int { return s.served })
	fmt.Fprintf(b, `<path d="M%d 0V%dH%d" fill="none" stroke="#555"/></g>`+"\n", plotLeft, panelHeight, plotWidth-plotRight)
}

// steps draws the counts of each second as a line of steps.
func (a axes) steps(b *strings.Builder, r *result, color string, count func(second) int) {
	fmt.Fprintf(b, `<path fill="none" stroke="%s" stroke-width="1.5" d="M%.1f %d`, color, a.x(0), panelHeight)
	for i, s := range r.seconds[:min(len(r.seconds), maxSeconds)] {
		fmt.Fprintf(b, "V%.1fH%.1f", a.y(count(s)), a.x(float64(i+1)))
	}
	if len(r.seconds) <= maxSeconds {
		fmt.Fprintf(b, "V%d", panelHeight)
	}
	b.WriteString("\"/>\n")
}
