// The report as one self-contained chart.

package replay

import (
	"fmt"
	"html"
	"math"
	"strings"
	"time"
)

const (
	chartWidth  = 960
	rowHeight   = 260
	plotHeight  = 150
	trafficLeft = 60
	trafficSize = 520
	curveLeft   = 670
	curveSize   = 250
)

const chartStyle = `text{font:12px sans-serif;fill:#222}.t{font-weight:bold;font-size:14px}.s{fill:#666}` +
	`.r{fill:#9ecae1}.d{fill:#d62728}.l{stroke:#222;stroke-dasharray:4 3}.q{stroke:#d62728}.c{stroke:#1f77b4}` +
	`.l,.q,.c{fill:none;stroke-width:1.5}.a{stroke:#999;fill:none}`

// svg draws a row for each series: traffic and denials over time, and the share of
// denials against the limit.
func (r *report) svg() []byte {
	var b strings.Builder
	height := 40 + rowHeight*len(r.Policies)
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d">`, chartWidth, height, chartWidth, height)
	fmt.Fprintf(&b, "<style>%s</style>\n<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n", chartStyle)
	fmt.Fprintf(&b, `<text class="t" x="16" y="24">%s requests, %s to %s UTC</text>`+"\n",
		thousands(int64(r.Requests)), r.Start.Format(clockTime), r.End.Format(clockTime))
	for i := range r.Policies {
		fmt.Fprintf(&b, `<g transform="translate(0 %d)">`+"\n", 40+rowHeight*i)
		r.Policies[i].draw(&b)
		b.WriteString("</g>\n")
	}
	b.WriteString("</svg>\n")
	return []byte(b.String())
}

func (p *policyReport) draw(b *strings.Builder) {
	fmt.Fprintf(b, `<text class="t" x="16" y="22">%s</text>`+"\n", html.EscapeString(strings.TrimSpace(p.Policy+"  "+p.Route+"  "+p.Limit)))
	p.drawTraffic(b)
	p.drawCurve(b)
}

// drawTraffic draws requests and denials in at most one column for each two pixels.
func (p *policyReport) drawTraffic(b *strings.Builder) {
	if len(p.Minutes) == 0 {
		return
	}
	first, last := p.Minutes[0].Minute, p.Minutes[len(p.Minutes)-1].Minute
	per := (last-first)/(trafficSize/2) + 1 // minutes in a column
	columns := make([]minuteCount, (last-first)/per+1)
	for _, m := range p.Minutes {
		c := &columns[(m.Minute-first)/per]
		c.Requests += m.Requests
		c.Denied += m.Denied
	}
	most := int64(1)
	for _, c := range columns {
		most = max(most, c.Requests)
	}
	width := float64(trafficSize) / float64(len(columns))
	y := func(n int64) float64 { return 40 + plotHeight*(1-float64(n)/float64(most)) }
	bars := func(class string, of func(minuteCount) int64) {
		fmt.Fprintf(b, `<path class="%s" d="`, class)
		for i, c := range columns {
			if n := of(c); n > 0 {
				fmt.Fprintf(b, "M%.1f %d V%.1f h%.1f V%dz", trafficLeft+float64(i)*width, 40+plotHeight, y(n), width, 40+plotHeight)
			}
		}
		b.WriteString("\"/>\n")
	}
	bars("r", func(c minuteCount) int64 { return c.Requests })
	bars("d", func(c minuteCount) int64 { return c.Denied })
	p.drawAdmitted(b, columns, width, y)
	axes(b, trafficLeft, trafficSize, thousands(most), "0")
	stamp := func(m int64) string { return time.Unix(m*60, 0).UTC().Format(clockTime) }
	fmt.Fprintf(b, `<text class="s" x="%d" y="208">%s</text><text class="s" x="%d" y="208" text-anchor="end">%s</text>`+"\n",
		trafficLeft, stamp(first), trafficLeft+trafficSize, stamp(last+1))
	fmt.Fprintf(b, `<text class="s" x="%d" y="226">Requests (blue) and denials (red) in %d min; the dashed line is what the limit admits</text>`+"\n", trafficLeft, per)
}

// drawAdmitted draws what the limit admits.
func (p *policyReport) drawAdmitted(b *strings.Builder, columns []minuteCount, width float64, y func(int64) float64) {
	b.WriteString(`<path class="l" d="`)
	for i, c := range columns {
		command := byte('L')
		if i == 0 {
			command = 'M'
		}
		at := y(c.Requests - c.Denied)
		fmt.Fprintf(b, "%c%.1f %.1f L%.1f %.1f ", command, trafficLeft+float64(i)*width, at, trafficLeft+float64(i+1)*width, at)
	}
	b.WriteString("\"/>\n")
}

// drawCurve draws the share of denied requests and clients against the limit.
func (p *policyReport) drawCurve(b *strings.Builder) {
	if len(p.Curve) < 2 {
		return
	}
	low, high := math.Log(float64(p.Curve[0].Limit)), math.Log(float64(p.Curve[len(p.Curve)-1].Limit))
	most := 0.001
	for _, c := range p.Curve {
		most = max(most, c.Requests, c.Clients)
	}
	x := func(n int64) float64 {
		return curveLeft + curveSize*(math.Log(float64(n))-low)/max(1e-9, high-low)
	}
	line := func(class string, of func(curvePoint) float64) {
		fmt.Fprintf(b, `<polyline class="%s" points="`, class)
		for _, c := range p.Curve {
			fmt.Fprintf(b, "%.1f,%.1f ", x(c.Limit), 40+plotHeight*(1-of(c)/most))
		}
		b.WriteString("\"/>\n")
	}
	line("q", func(c curvePoint) float64 { return c.Requests })
	line("c", func(c curvePoint) float64 { return c.Clients })
	axes(b, curveLeft, curveSize, percent(most), "0 %")
	fmt.Fprintf(b, `<text class="s" x="%d" y="208">%s</text><text class="s" x="%d" y="208" text-anchor="end">%s requests per window</text>`+"\n",
		curveLeft, thousands(p.Curve[0].Limit), curveLeft+curveSize, thousands(p.Curve[len(p.Curve)-1].Limit))
	fmt.Fprintf(b, `<text class="s" x="%d" y="226">Denied requests (red) and clients (blue)</text>`+"\n", curveLeft)
}

func axes(b *strings.Builder, left, size int, top, bottom string) {
	fmt.Fprintf(b, `<path class="a" d="M%d 40 V%d H%d"/>`, left, 40+plotHeight, left+size)
	fmt.Fprintf(b, `<text class="s" x="%d" y="46" text-anchor="end">%s</text>`, left-6, top)
	fmt.Fprintf(b, `<text class="s" x="%d" y="%d" text-anchor="end">%s</text>`+"\n", left-6, 40+plotHeight, bottom)
}
