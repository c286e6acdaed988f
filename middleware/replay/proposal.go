// Answers and proposals, and the Go code to paste.

package replay

import (
	"fmt"
	"maps"
	"slices"

	"github.com/penstock-go/penstock/algorithms"
)

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
