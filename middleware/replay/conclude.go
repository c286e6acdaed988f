// What follows from the decisions: proposals, and doubts about them.

package replay

import (
	"fmt"
	"math"
	"net/url"
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
