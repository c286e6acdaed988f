// Answers and proposals, and the Go code to paste.

package replay

import (
	"fmt"
	"go/format"
	"slices"
	"strings"
	"time"

	"github.com/penstock-go/penstock/algorithms"
)

// answer completes the report on a series by what the search has found.
func (p *replay) answer(r *policyReport, i int, found [goals]*search, proposed *trial) {
	s := p.history.series[i]
	if found[clients] == nil {
		return
	}
	shares := [goals]float64{p.goals.Requests, p.goals.Clients}
	for g, of := range [goals]string{"requests", "clients"} {
		f := found[g]
		smallest := smallest{Of: of, Under: shares[g]}
		if l, ok := limitOf(s.limit, f.hi); ok && !f.none {
			smallest.Limit, smallest.requests = l.String(), f.hi
		}
		r.Smallest = append(r.Smallest, smallest)
	}
	if l := proposed.limits[i]; l != (algorithms.Limit{}) {
		r.Proposal = &proposal{
			Limit:    l.String(),
			Requests: float64(proposed.tallies[i].denied) / float64(s.tally.requests),
			Clients:  float64(proposed.clients[i]) / float64(s.keys),
			Code:     p.code(s, l),
		}
		r.Note = p.caution(s)
	} else if r.Note = p.tooShort(s); r.Note == "" && !isCandidate(s.policy) {
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
	if l.Algorithm().Calendar() {
		return fmt.Sprintf("ratelimit.Must(algorithms.ParseLimit(%q))", l)
	}
	var name strings.Builder
	for part := range strings.SplitSeq(l.Algorithm().String(), "-") {
		name.WriteString(strings.ToUpper(part[:1]) + part[1:])
	}
	text := fmt.Sprintf("algorithms.%s(%s, %s)", name.String(), grouped(l.Requests(), "_"), goWindow(l.Window()))
	if l.Burst() != l.Requests() {
		text += fmt.Sprintf(".WithBurst(%s)", grouped(l.Burst(), "_"))
	}
	return text
}

func goWindow(d time.Duration) string {
	for _, unit := range [...]struct {
		name string
		size time.Duration
	}{
		{"time.Hour", time.Hour}, {"time.Minute", time.Minute}, {"time.Second", time.Second},
		{"time.Millisecond", time.Millisecond}, {"time.Microsecond", time.Microsecond},
	} {
		switch n := d / unit.size; {
		case d%unit.size != 0:
		case n == 1:
			return unit.name
		default:
			return fmt.Sprintf("%d*%s", n, unit.name)
		}
	}
	return fmt.Sprint(int64(d))
}
