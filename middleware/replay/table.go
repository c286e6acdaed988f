// The report as a table for people.

package replay

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

const clockTime = "2006-01-02 15:04"

// write writes the report.
func (r *report) write(out io.Writer) {
	fmt.Fprintf(out, "%s requests from %s to %s UTC (%v)\n", thousands(int64(r.Requests)),
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
			fmt.Fprintf(out, "  "+thousands(int64(n))+" "+format+"\n", args...)
		}
	}
	note(r.Bad, "of %s lines are bad", thousands(int64(r.Lines)))
	for _, line := range r.BadShown {
		fmt.Fprintf(out, "    %s\n", line)
	}
	note(r.Late, "lines came more than a minute out of order, and count later than they came")
	if r.disordered() {
		fmt.Fprintln(out, "  Do not trust the numbers below: late lines pile up. Name each log file on the command line, or sort the log by time.")
	}
	note(r.Unrouted, "requests match no route")
	if r.Unrouted*2 > r.Requests {
		fmt.Fprintln(out, "  If the log is of another service, replay it with the handler of that service.")
	}
	note(r.Unknown, "requests have no user and no IP address, and count as one client")
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
	title := p.Policy
	if p.Route != "" {
		title += "  " + p.Route
	}
	fmt.Fprintln(out, title)
	var table strings.Builder
	t := tabwriter.NewWriter(&table, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "\trequests\tdenied\tshare\tkeys\tdenied keys\tlongest wait\tworst minute (UTC)\t ")
	for i, r := range p.Results {
		mark := "  "
		if i == 0 {
			mark = "> "
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t\n", mark+fmt.Sprintf("%-36s", r.Limit), thousands(r.Requests), thousands(r.Denied), percent(r.Share),
			thousands(int64(r.Keys)), thousands(int64(r.Clients)), seconds(r.Longest),
			fmt.Sprintf("%s: %s of %s", r.Worst.Start.Format(clockTime), thousands(r.Worst.Denied), thousands(r.Worst.Requests)))
	}
	_ = t.Flush() // a Builder has no errors
	for line := range strings.Lines(table.String()) {
		fmt.Fprintln(out, strings.TrimRight(line, " \n"))
	}
	if len(p.MostDenied) > 0 {
		var clients []string
		for _, c := range p.MostDenied {
			name, _, _ := strings.Cut(c.Key, "|") // the part that names the client
			clients = append(clients, fmt.Sprintf("%s %s of %s", name, thousands(int64(c.Denied)), thousands(int64(c.Requests))))
		}
		fmt.Fprintf(out, "  denied most      %s\n", strings.Join(clients, ", "))
	}
	for _, s := range p.Smallest {
		limit := s.Limit
		if limit == "" {
			limit = "none of this algorithm"
		}
		fmt.Fprintf(out, "  smallest limit   %s, to deny at most %s of %s\n", limit, percent(s.Under), s.Of)
	}
	fmt.Fprintf(out, "  Redis            %s calls, at most %s in a second; about %s keys at once\n",
		thousands(p.Redis.Calls), thousands(p.Redis.Busiest), thousands(int64(p.Redis.Keys)))
	p.writeProposal(out, goals)
}

func (p *policyReport) writeProposal(out io.Writer, goals targets) {
	if p.Proposal == nil {
		if p.Note != "" {
			fmt.Fprintf(out, "  no proposal      %s\n", p.Note)
		}
		return
	}
	fmt.Fprintf(out, "  proposal         %s: with %s headroom, denies %s of requests and %s of clients\n",
		p.Proposal.Limit, percent(goals.Headroom), percent(p.Proposal.Requests), percent(p.Proposal.Clients))
	if p.Note != "" {
		fmt.Fprintf(out, "                   %s\n", p.Note)
	}
	for line := range strings.Lines(p.Proposal.Code) {
		fmt.Fprintf(out, "      %s", line)
	}
	fmt.Fprintln(out)
}

func thousands(n int64) string { return grouped(n, ",") }

// grouped writes a number with a separator between thousands.
func grouped(n int64, separator string) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%s%s%03d", grouped(n/1000, separator), separator, n%1000)
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
	d := time.Duration(s * float64(time.Second))
	if d < time.Second {
		return d.Round(time.Millisecond).String()
	}
	return d.Round(100 * time.Millisecond).String()
}
