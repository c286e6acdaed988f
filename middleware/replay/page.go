// The report as a page: the curve of each limit, and its table.

package replay

import (
	"fmt"
	"html/template"
	"io"
	"math"
	"strings"
)

// The size of a curve, without its margins.
const width, height = 600, 200

// curveOf returns the points of a line: to the right the limits, on a logarithmic scale, and
// upwards the share of denied requests or clients, of which the highest is at the top.
func curveOf(requests bool, all []point) string {
	var b strings.Builder
	from, to, most := all[0].N, all[len(all)-1].N, max(mostOf(all), 1e-9)
	for _, p := range all {
		x, y := 0.0, height*(1-p.Share/most)
		if requests {
			y = height * (1 - p.Requests/most)
		}
		if to > from {
			x = width * math.Log(p.N/from) / math.Log(to/from)
		}
		fmt.Fprintf(&b, "%.1f,%.1f ", x, y)
	}
	return b.String()
}

// mostOf returns the highest share of a curve.
func mostOf(all []point) (most float64) {
	for _, p := range all {
		most = max(most, p.Share, p.Requests)
	}
	return most
}

var page = template.Must(template.New("").Funcs(template.FuncMap{
	"percent": percent, "thousands": thousands[int64], "most": mostOf, "last": func(all []point) point { return all[len(all)-1] }, "count": thousands[int], "curve": curveOf,
}).Parse(`<!DOCTYPE html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>Replay</title>
<style>:root{color-scheme:light dark;--clients:#0a6f78;--requests:#b4530a}body{font:16px/1.5 sans-serif;max-width:66em;margin:2em auto;padding:0 1em}
@media(prefers-color-scheme:dark){:root{--clients:#4cc3cf;--requests:#f0a05a}}
table{border-collapse:collapse;white-space:nowrap}th,td{padding:.2em .8em;text-align:right}td:first-child,th:first-child{text-align:left;padding-left:0}
.wide,pre{overflow-x:auto}svg{width:100%;max-width:48em}pre{font-size:13px}text{fill:currentColor}@media(max-width:600px){text{font-size:26px}}
polyline{fill:none;stroke-width:3;stroke:var(--clients)}.requests{stroke:var(--requests);stroke-dasharray:8 4}</style>
<h1>What each limit would cost</h1>
{{range .Policies}}<h2>{{.Policy}} {{.Route}}</h2><p>Now: {{.Limit}}.
{{with .Proposal}}Proposal: {{.Limit}}. It denies {{percent .Requests}} of requests and {{percent .Share}} of clients.{{else}}No proposal.{{end}}</p>
{{with .Note}}<p>Note: {{.}}.</p>{{end}}
{{with .Curve}}<svg viewBox="-110 -30 730 270" role="img" aria-label="Shares of denied clients and requests, by limit">
<path d="M0 0V200H600" fill="none" stroke="#888"/><text x="-8" y="6" text-anchor="end">{{percent (most .)}}</text><text x="-8" y="205" text-anchor="end">0 %</text>
<text y="230">{{(index . 0).Limit}}</text><text x="600" y="230" text-anchor="end">{{(last .).Limit}}</text>
<polyline points="{{curve false .}}"/><polyline class="requests" points="{{curve true .}}"/></svg>
<p>Solid: clients denied. Dashed: requests denied.</p>
<div class="wide" tabindex="0"><table><tr><th>Limit<th>Clients denied<th>Requests denied<th>Busiest second that passes</tr>
{{range .}}<tr><td>{{.Limit}}<td>{{count .Clients}} ({{percent .Share}})<td>{{thousands .Denied}} ({{percent .Requests}})<td>{{thousands .Busiest}}</tr>
{{end}}</table></div>{{end}}{{end}}<h2>Report</h2><pre tabindex="0">{{.Text}}</pre></html>
`))

// writePage writes the curves, and below them the report as text.
func (r *report) writePage(out io.Writer) error {
	var text strings.Builder
	r.write(&text)
	return page.Execute(out, struct {
		*report
		Text string
	}{r, text.String()})
}
