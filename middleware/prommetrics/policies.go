// The series of policies.

package prommetrics

import (
	"maps"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/penstock-go/penstock/middleware"
)

// A seriesName identifies the counters of a policy's tier. Both names are in the
// configuration.
type seriesName struct{ policy, tier string }

// series are the counters of a policy's tier.
type series struct {
	*policySeries
	outcomes [ratelimit.OutcomeInvalid + 1]prometheus.Counter
}

// policySeries are the counters of a policy.
type policySeries struct {
	unknownTier, abandoned, bans prometheus.Counter

	settled, settleFailed, settleDropped prometheus.Counter

	stricter, laxer prometheus.Counter // divergences: the candidate is
}

// find returns the counters of a policy's tier.
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
	p, ok := m.policies[policy]
	if !ok {
		p = m.newPolicy(policy)
		m.policies[policy] = p
	}
	s, label := &series{policySeries: p}, labelOf(tier)
	for outcome := range s.outcomes {
		s.outcomes[outcome] = m.requests.WithLabelValues(policy, label, ratelimit.Outcome(outcome).String())
	}
	all := maps.Clone(*m.series.Load())
	all[name] = s
	m.series.Store(&all)
	return s
}

// labelOf returns a name as the value of a label, which must be UTF-8.
func labelOf(name string) string { return strings.ToValidUTF8(name, "\uFFFD") }

func (m *Metrics) newPolicy(policy string) *policySeries {
	return &policySeries{
		unknownTier: m.unknownTier.WithLabelValues(policy),
		abandoned:   m.abandoned.WithLabelValues(policy),
		bans:        m.bans.WithLabelValues(policy),

		settled:       m.settlements.WithLabelValues(policy, "made"),
		settleFailed:  m.settlements.WithLabelValues(policy, "failed"),
		settleDropped: m.settlements.WithLabelValues(policy, "dropped"),

		stricter: m.divergences.WithLabelValues(policy, "allowed", "denied"),
		laxer:    m.divergences.WithLabelValues(policy, "denied", "allowed"),
	}
}

var topOffender = describe("ratelimit_top_offender_denial_ratio", "Largest share of one key in the policy's recent denials.", "policy")

// collectPolicies collects the gauges of the policies in force.
func (m *Metrics) collectPolicies(ch chan<- prometheus.Metric) {
	ratios := make(map[string]float64)
	for _, middleware := range m.watchedMiddlewares() {
		for _, p := range middleware.Policies() {
			ratios[p.Name] = max(ratios[p.Name], topRatio(middleware, p.Name))
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for policy, ratio := range ratios {
		// An Update may not have announced its policies yet.
		if _, ok := m.policies[policy]; ok {
			ch <- prometheus.MustNewConstMetric(topOffender, prometheus.GaugeValue, ratio, policy)
		}
	}
}

func (m *Metrics) watchedMiddlewares() []*ratelimit.Middleware {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Collect(maps.Keys(m.middlewares))
}

// topRatio returns the share of a policy's recent denials that one key certainly
// has; 0 without denials.
func topRatio(middleware *ratelimit.Middleware, policy string) float64 {
	for _, o := range middleware.TopDenied(policy, 1) {
		return float64(o.Denied-o.Error) / float64(o.Of)
	}
	return 0
}
