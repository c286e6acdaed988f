// Answers and proposals, and the Go code to paste.

package replay

import (
	"fmt"
	"go/format"
	"slices"
	"strings"

	"github.com/penstock-go/penstock/algorithms"
)

// answer completes the report on a series by what the searches have found.
func (p *replay) answer(r *policyReport, i int, found, rates []*search, proposed *trial) {
	s := p.history.series[i]
	if found == nil {
		r.Note = pairNotes[s.pair]
		return
	}
	smallestOf := func(f *search) string {
		if l, ok := f.limit(f.hi); ok && !f.none {
			return l.String()
		}
		return ""
	}
	r.Smallest = smallestOf(found[clients])
	if rates != nil && rates[0].hi < found[clients].hi {
		r.Apart = smallestOf(rates[0])
	}
	if l := proposed.limits[i]; l != (algorithms.Limit{}) {
		r.Proposal = &proposal{
			point: pointOf(proposed, i, s), Code: p.code(s, l),
			MostDenied: p.history.mostDenied(i, func(id keyID) uint32 { return proposed.denied[id] }),
		}
		r.Results = append(r.Results, resultOf(l, s, &proposed.tallies[i], proposed.clients[i]))
		r.Note = p.caution(s)
	} else if r.Note = p.doubt(s); r.Note == "" && !isCandidate(s.policy) {
		r.Note = fmt.Sprintf("clients want more than a %v can count", s.limit.Algorithm())
	}
}

// code returns the Policy to paste, with the limit as a candidate, or "" for an
// override. A candidate is tried only where Policy.Limit holds, so the limit of a plan
// replaces the old one.
func (p *replay) code(s *series, l algorithms.Limit) string {
	b, candidate, policy := new(strings.Builder), "", p.engine.policies[s.policy]
	const before = "var _ = ratelimit.Policy"
	fmt.Fprintf(b, before+"{\n\tName: %q, // the fields that are not here stay as they are\n", s.policy)
	switch {
	case policy == nil:
		fmt.Fprintf(b, "\tLimit: %s,\n", goLimit(l))
	case policy.Limit == s.limit && policy.Shadow:
		fmt.Fprintf(b, "\tShadow: true,\n\tLimit: %s,\n", goLimit(l))
	case policy.Limit == s.limit:
		candidate = fmt.Sprintf("candidate := %s\n", goLimit(l))
		fmt.Fprintf(b, "\tLimit: %s,\n\tCandidate: &candidate,\n", goLimit(s.limit))
	default:
		var tiers []string
		for tier, limit := range policy.Tiers {
			if limit == s.limit {
				tiers = append(tiers, fmt.Sprintf("\t\t%q: %s,\n", tier, goLimit(l)))
			}
		}
		if tiers == nil { // an operator's override, which no Policy has
			return ""
		}
		slices.Sort(tiers)
		fmt.Fprintf(b, "\tTiers: map[string]algorithms.Limit{\n%s\t},\n", strings.Join(tiers, ""))
	}
	b.WriteString("}")
	text, err := format.Source([]byte(b.String()))
	if err != nil { // a name that no limiter accepts
		return candidate + b.String()
	}
	return candidate + strings.TrimPrefix(string(text), before)
}

// goLimit returns the Go expression of a limit.
func goLimit(l algorithms.Limit) string {
	return fmt.Sprintf("ratelimit.Must(algorithms.ParseLimit(%q))", l)
}
