// The series of policies.

package prommetrics

import (
	"maps"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/penstock-go/penstock/keyfunc"
	"github.com/penstock-go/penstock/middleware"
)

// A seriesName identifies the counters of a policy's tier. Both names are in the
// configuration.
type seriesName struct{ policy, tier string }

type series struct {
	outcomes [ratelimit.OutcomeInvalid + 1]atomic.Pointer[prometheus.Counter] // nil: not made yet
	near     prometheus.Counter
}

func (m *Metrics) find(policy, tier string) *series {
	if s, ok := (*m.series.Load())[seriesName{policy, tier}]; ok {
		return s
	}
	return m.add(policy, tier)
}

// add makes all counters of a policy's tier: the first denial would not show in
// rate() if its series began with it.
func (m *Metrics) add(policy, tier string) *series {
	m.mu.Lock()
	defer m.mu.Unlock()
	name := seriesName{policy, tier}
	if s, ok := (*m.series.Load())[name]; ok {
		return s
	}
	label := labelOf(tier)
	s := &series{near: m.near.WithLabelValues(policy, label)}
	for _, outcome := range byTier {
		m.count(s, name, outcome).Add(0)
	}
	all := maps.Clone(*m.series.Load())
	all[name] = s
	m.series.Store(&all)
	return s
}

// byTier are the outcomes that depend on the tier's limit. The others have no tier: most of
// their series would be 0 for ever.
var byTier = []ratelimit.Outcome{ratelimit.OutcomeAllowed, ratelimit.OutcomeDenied}

func (m *Metrics) count(s *series, name seriesName, outcome ratelimit.Outcome) prometheus.Counter {
	if c := s.outcomes[outcome].Load(); c != nil {
		return *c
	}
	tier := labelOf(name.tier)
	if !slices.Contains(byTier, outcome) {
		tier = ""
	}
	c := m.requests.WithLabelValues(name.policy, tier, outcome.String())
	s.outcomes[outcome].Store(&c)
	return c
}

// labelOf returns a name as the value of a label, which must be UTF-8.
func labelOf(name string) string { return strings.ToValidUTF8(name, "\uFFFD") }

// begin makes the counters of a policy. It has those that its configuration can need.
// A hang-up and a mistake of the program have none before they happen, and neither has an
// outage of a limiter that certainly needs no other process.
func (m *Metrics) begin(p *ratelimit.Policy, alone bool) {
	s := m.find(p.Name, "")
	without := map[ratelimit.Outcome]bool{
		ratelimit.OutcomeCancelled: true, ratelimit.OutcomeInvalid: true,
		ratelimit.OutcomeBorrowed: p.ShareBy == (keyfunc.Key{}), ratelimit.OutcomeSpared: p.After == "",
		ratelimit.OutcomeDegradedAllowed: alone, ratelimit.OutcomeDegradedDenied: alone,
		ratelimit.OutcomeFailedOpen: alone, ratelimit.OutcomeFailedClosed: alone,
	}
	for outcome := range ratelimit.Outcome(len(s.outcomes)) {
		if !without[outcome] {
			m.count(s, seriesName{p.Name, ""}, outcome).Add(0)
		}
	}
	if p.After != "" { // the other policy of the pair is spared, too
		m.count(m.find(p.After, ""), seriesName{p.After, ""}, ratelimit.OutcomeSpared).Add(0)
	}
	for tier := range p.Tiers {
		m.find(p.Name, tier)
	}
	if len(p.Tiers) > 0 {
		m.unknownTier.WithLabelValues(p.Name)
	}
	if p.Ban != nil {
		m.bans.WithLabelValues(p.Name)
	}
	if p.Candidate != nil {
		m.divergences.WithLabelValues(p.Name, "allowed", "denied")
		m.divergences.WithLabelValues(p.Name, "denied", "allowed")
	}
}
