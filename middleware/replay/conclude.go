// What follows from the decisions: proposals, doubts about them, and the Go code to paste.

package replay

import (
	"fmt"
	"maps"
	"math"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/penstock-go/penstock/algorithms"
)

// proposals returns the trial of the proposals.
func (p *replay) proposals(found [][]*search) *trial {
	t := &trial{limits: make([]algorithms.Limit, len(p.history.series))}
	for i, s := range p.history.series {
		if found[i] == nil {
			continue
		}
		f := found[i][clients]
		if f.none || p.doubt(s) != "" || isCandidate(s.policy) {
			continue
		}
		if n, enough := countable(s.limit, withHeadroom(f.hi, p.report.Goals.Headroom)); enough {
			t.limits[i], _ = limitOf(s.limit, n)
		}
	}
	return t
}

// withHeadroom adds headroom to a number, and rounds it up by less than 3 %.
func withHeadroom(n int64, headroom float64) int64 {
	n = int64(math.Ceil(float64(n)*(1+headroom) - 1e-9))
	step := int64(1)
	for n/step >= 200 {
		step *= 10
	}
	step = max(1, step/2)
	return (n + step - 1) / step * step
}

// What a conclusion needs.
const (
	fewestRequests = 1_000
	fewestWindows  = 10
	fewestClients  = 10
)

// disordered reports whether so many lines were late that the report misleads: late
// lines pile up at one instant.
func (r *report) disordered() bool { return r.Late*100 > r.Requests }

// doubt says why the log allows no conclusion about a series, "" if it does.
func (p *replay) doubt(s *series) string {
	span := time.Duration(s.last-s.first) * time.Microsecond
	switch {
	case p.report.disordered():
		return "the log is out of order"
	case s.address && p.report.Unknown*100 > p.report.Requests:
		return fmt.Sprintf("%s of %s requests have no IP address, and count as one client", thousands(p.report.Unknown), thousands(p.report.Requests))
	case s.requests < fewestRequests:
		return fmt.Sprintf("too short: the log has %d requests of this limit; a proposal needs %d", s.requests, fewestRequests)
	case span < fewestWindows*s.limit.Window():
		return fmt.Sprintf("too short: the log covers %v; a proposal needs %d windows of %v", span.Round(time.Second), fewestWindows, s.limit.Window())
	}
	const most = 0.9
	if share := float64(s.top.requests) / float64(s.requests); share > most && isAddress(s.top.text) {
		return fmt.Sprintf("%s sent %s of the requests: is it your proxy? Log the client's address", strings.ReplaceAll(s.top.text, "|", " "), percent(share))
	}
	return ""
}

// pairNotes say why the limit of a pair has no trials, by the field that makes it.
var pairNotes = map[string]string{
	"After":   "two policies decide together (After), so a trial of one misleads; the denials are those of both",
	"ShareBy": "tenants share the limit (ShareBy), so a trial without shares misleads; the denials are an estimate, because all recent tenants count as present",
}

// caution says what a proposal does not account for.
func (p *replay) caution(s *series) string {
	span := time.Duration(s.last-s.first) * time.Microsecond
	switch {
	case s.keys > 1 && s.keys < fewestClients:
		return fmt.Sprintf("based on only %d clients", s.keys)
	case span < 24*time.Hour:
		return fmt.Sprintf("based on %v; other hours and days may have more traffic", span.Round(time.Second))
	}
	return ""
}

// describe reports what the engine has decided on a series.
func (p *replay) describe(i int, s *series) policyReport {
	r := policyReport{Policy: s.policy, Limit: s.limit.String(), Results: []result{{
		Requests: s.requests, Denied: s.denied, Share: float64(s.denied) / float64(s.requests),
		Keys: s.keys, Clients: s.deniedKeys, Longest: s.longest.Seconds(), Worst: s.worst,
	}}}
	r.Route, _ = url.PathUnescape(s.route)
	r.MostDenied = p.history.mostDenied(i, func(id keyID) uint32 { return p.history.keys[id].denied })
	return r
}

// isCandidate reports whether a series counts a candidate beside the limit of a policy.
func isCandidate(policy string) bool { return strings.Contains(policy, "~") }

// answer completes the report on a series by what the searches have found.
func (p *replay) answer(r *policyReport, i int, found []*search, proposed *trial) {
	s := p.history.series[i]
	if found == nil {
		r.Note = pairNotes[s.pair]
		return
	}
	f := found[clients]
	if l, ok := limitOf(s.limit, f.hi); ok && !f.none {
		r.Smallest = l.String()
	}
	if l := proposed.limits[i]; l != (algorithms.Limit{}) {
		r.Proposal = &proposal{
			point: pointOf(proposed, i, s), Code: p.code(s, l),
			MostDenied: p.history.mostDenied(i, func(id keyID) uint32 { return proposed.denied[id] }),
		}
		r.Note = p.caution(s)
	} else if r.Note = p.doubt(s); r.Note == "" && !isCandidate(s.policy) {
		r.Note = fmt.Sprintf("clients want more than a %v can count", s.limit.Algorithm())
	}
}

// code returns the fields of the Policy to paste, with the limit as a candidate, or "" for an
// override. A candidate is tried only where Policy.Limit holds, so the limit of a plan
// replaces the old one.
func (p *replay) code(s *series, l algorithms.Limit) string {
	policy, limit := p.engine.policies[s.policy], fmt.Sprintf("ratelimit.Must(algorithms.ParseLimit(%q))", l)
	in := fmt.Sprintf("// in the Policy %q\n", s.policy)
	switch {
	case policy == nil || policy.Limit == s.limit && policy.Shadow:
		return in + fmt.Sprintf("Limit: %s,\n", limit)
	case policy.Limit == s.limit:
		return fmt.Sprintf("candidate := %s\n", limit) + in + "Candidate: &candidate,\n"
	}
	tiers := ""
	for _, tier := range slices.Sorted(maps.Keys(policy.Tiers)) {
		if policy.Tiers[tier] == s.limit {
			tiers += fmt.Sprintf("\t%q: %s,\n", tier, limit)
		}
	}
	if tiers == "" { // an operator's override, which no Policy has
		return ""
	}
	return in + "Tiers: map[string]algorithms.Limit{\n" + tiers + "},\n"
}
