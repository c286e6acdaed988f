// The report: as JSON, as text, and as a page.

package replay

import (
	"cmp"
	"fmt"
	"html/template"
	"io"
	"maps"
	"math"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// A report is the result of a replay. Durations are in seconds, and shares are parts of 1.
type report struct {
	lines

	Start        time.Time `json:"start"`
	End          time.Time `json:"end"`
	WholeSeconds bool      `json:"whole_seconds"` // the log has no fractions of seconds

	Median  float64 `json:"median_duration"` // of logged durations
	Longest float64 `json:"longest_duration"`

	Requests  int            `json:"requests"`
	Unrouted  int            `json:"unmatched"`       // requests that no route serves and no policy limits
	Unknown   int            `json:"unknown"`         // requests that need an IP address, and have none
	Unlimited int            `json:"unlimited"`       // requests that met no policy
	Unmet     []string       `json:"unmet,omitempty"` // policies that no request met
	Refused   map[int]int    `json:"refused"`         // by the status that the replay answers
	Logged    map[int]int    `json:"logged"`          // 429 and 503 in the log
	Differ    int            `json:"differ"`          // requests that the log and the replay answer differently
	Goals     targets        `json:"goals"`
	Policies  []policyReport `json:"policies"`
}

// lines are the counts of what the files have.
type lines struct {
	All      int      `json:"lines"`
	Bad      int      `json:"bad_lines"`
	BadShown []string `json:"bad_lines_shown,omitempty"` // the first, with their places
	Late     int      `json:"late_lines"`                // more than a minute out of order
	Cut      []string `json:"unfinished,omitempty"`      // files that end in the middle of a line
}

// targets are the share that limits may deny, and the headroom of proposals.
type targets struct {
	Clients  float64 `json:"clients"`
	Headroom float64 `json:"headroom"`
}

// A policyReport is the report on one limit of a policy. A policy has one for each plan,
// and for each route if its key contains the route.
type policyReport struct {
	Policy string `json:"policy"`
	Route  string `json:"route,omitempty"`
	Limit  string `json:"limit"`

	Results    []result  `json:"results"` // one, of the limit
	MostDenied []client  `json:"most_denied,omitempty"`
	Smallest   string    `json:"smallest,omitempty"` // the smallest limit for the goal; "": the algorithm has none
	Curve      []point   `json:"curve,omitempty"`
	Proposal   *proposal `json:"proposal,omitempty"`
	Note       string    `json:"note,omitempty"` // why there is no proposal, or what it lacks
}

// A result is what a limit has done.
type result struct {
	Requests int64   `json:"requests"`
	Denied   int64   `json:"denied"`
	Share    float64 `json:"denied_share"`
	Keys     int     `json:"keys"`
	Clients  int     `json:"denied_keys"`
	Longest  float64 `json:"longest_wait"` // of a denial; waits that never end are left out
	Worst    minute  `json:"worst_minute"` // the first with the most denials, or with the most requests if there are none
}

// A client is a key and its requests.
type client struct {
	Key      string `json:"key"`
	Requests uint32 `json:"requests"`
	Denied   uint32 `json:"denied"`
}

// A proposal is a limit with headroom, and what it would have done.
type proposal struct {
	point
	MostDenied []client `json:"most_denied,omitempty"`
	Code       string   `json:"code,omitempty"` // "": the limit is an override
}

// write writes the report.
func (r *report) write(out io.Writer) {
	fmt.Fprintf(out, "%s requests from %s to %s UTC (%v)\n", thousands(r.Requests),
		r.Start.Format(time.DateTime), r.End.Format(time.DateTime), r.End.Sub(r.Start).Round(time.Second))
	r.writeNotes(out)
	for i := range r.Policies {
		fmt.Fprintln(out)
		r.Policies[i].write(out, r.Goals)
	}
}

func (r *report) writeNotes(out io.Writer) {
	note := func(n int, format string, args ...any) {
		if n > 0 {
			fmt.Fprintf(out, "  "+thousands(n)+" "+format+"\n", args...)
		}
	}
	note(r.Bad, "of %s lines are bad", thousands(r.All))
	for _, line := range r.BadShown {
		fmt.Fprintf(out, "    %s\n", line)
	}
	note(r.Late, "lines came more than a minute out of order, and count later than they came")
	if r.disordered() {
		fmt.Fprintln(out, "  Do not trust the numbers below: late lines pile up. Name each log file on the command line, or sort the log by time.")
	}
	for _, name := range r.Cut {
		fmt.Fprintf(out, "  %q ends in the middle of a line, which is left out\n", name)
	}
	if r.Longest > 0 {
		fmt.Fprintf(out, "  durations: median %s, longest %s; -duration-unit sets another unit\n", seconds(r.Median), seconds(r.Longest))
	}
	note(r.Unrouted, "requests match no route, and meet no policy")
	if r.Unrouted*2 > r.Requests {
		fmt.Fprintln(out, "  If the log is of another service, replay it with the handler of that service.")
	}
	note(r.Unknown, "requests need an IP address and have none, so they count as one client")
	note(r.Unlimited, "requests meet no policy")
	if len(r.Unmet) > 0 {
		fmt.Fprintf(out, "  No request meets %s.\n", strings.Join(r.Unmet, ", "))
	}
	for _, status := range slices.Sorted(maps.Keys(r.Refused)) {
		note(r.Refused[status], "would be refused with %d", status)
	}
	for _, status := range slices.Sorted(maps.Keys(r.Logged)) {
		note(r.Logged[status], "were refused with %d in the log", status)
	}
	if len(r.Logged) > 0 {
		note(r.Differ, "requests are denied in only one of the log and the replay")
	}
	if r.WholeSeconds {
		fmt.Fprintln(out, "  The log has whole seconds. Requests of one second come at once, so bursts look larger than they were.")
	}
}

func (p *policyReport) write(out io.Writer, goals targets) {
	title, r := p.Policy, p.Results[0]
	if p.Route != "" {
		title += "  " + p.Route
	}
	fmt.Fprintln(out, title)
	fmt.Fprintf(out, "  limit            %s, denies %s of %s requests (%s) and %s of %s keys\n", p.Limit,
		thousands(r.Denied), thousands(r.Requests), percent(r.Share), thousands(r.Clients), thousands(r.Keys))
	writeClients(out, "denied most", p.MostDenied)
	fmt.Fprintf(out, "  worst minute     %s UTC, %s of %s requests denied; longest wait %s\n",
		r.Worst.Start.Format("2006-01-02 15:04"), thousands(r.Worst.Denied), thousands(r.Worst.Requests), seconds(r.Longest))
	writeCurve(out, p.Curve)
	if len(p.Curve) > 0 || p.Smallest != "" {
		fmt.Fprintf(out, "  smallest limit   %s, to deny at most %s of clients\n", cmp.Or(p.Smallest, "none of this algorithm"), percent(goals.Clients))
	}
	p.writeProposal(out, goals)
}

// writeCurve writes a table of limits.
func writeCurve(out io.Writer, curve []point) {
	if len(curve) == 0 {
		return
	}
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(t, "  %-38s\tclients denied\tshare\trequests denied\tshare\tbusiest second that passes\t\n", "limits")
	for _, p := range curve {
		fmt.Fprintf(t, "    %-36s\t%s\t%s\t%s\t%s\t%s\t\n", p.Limit, thousands(p.Clients), percent(p.Share), thousands(p.Denied), percent(p.Requests), thousands(p.Busiest))
	}
	_ = t.Flush() // the errors of out are those of its buffer
}

// writeClients writes who was denied, and how often.
func writeClients(out io.Writer, title string, denied []client) {
	var clients []string
	for _, c := range denied {
		name, _, _ := strings.Cut(c.Key, "|") // the part that names the client
		clients = append(clients, fmt.Sprintf("%s %s of %s", name, thousands(c.Denied), thousands(c.Requests)))
	}
	if clients != nil {
		fmt.Fprintf(out, "  %-16s %s\n", title, strings.Join(clients, ", "))
	}
}

func (p *policyReport) writeProposal(out io.Writer, goals targets) {
	if p.Proposal == nil {
		if p.Note != "" {
			fmt.Fprintf(out, "  no proposal      %s\n", p.Note)
		}
		return
	}
	fmt.Fprintf(out, "  proposal         %s: with %s headroom, denies %s of requests and %s of clients\n",
		p.Proposal.Limit, percent(goals.Headroom), percent(p.Proposal.Requests), percent(p.Proposal.Share))
	writeClients(out, "it denies most", p.Proposal.MostDenied)
	if p.Note != "" {
		fmt.Fprintf(out, "                   %s\n", p.Note)
	}
	for line := range strings.Lines(p.Proposal.Code) {
		fmt.Fprintf(out, "      %s", line)
	}
}

// thousands writes a number with a separator between thousands.
func thousands[N int | int64 | uint32](n N) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%s,%03d", thousands(n/1000), n%1000)
}

// percent writes a share with two digits after the point, and never as 0 unless it is.
func percent(share float64) string {
	switch p := share * 100; {
	case p == 0:
		return "0 %"
	case p < 0.01:
		return "<0.01 %"
	case p == float64(int64(p)):
		return fmt.Sprintf("%.0f %%", p)
	default:
		return fmt.Sprintf("%.2f %%", p)
	}
}

func seconds(s float64) string {
	if s == 0 {
		return "-"
	}
	return time.Duration(s * float64(time.Second)).Round(time.Millisecond).String()
}

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
