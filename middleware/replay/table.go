// The report as a table for people.

package replay

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

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
