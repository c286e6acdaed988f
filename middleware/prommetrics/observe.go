package prommetrics

import (
	"context"
	"maps"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/penstock-go/penstock/algorithms"
	ratelimit "github.com/penstock-go/penstock/middleware"
)

// A seriesName is where counters are found: by policy and tier, which come from
// the configuration.
type seriesName struct{ policy, tier string }

// series are the counters of a policy's tier.
type series struct {
	*policySeries
	outcomes [ratelimit.Outcomes]prometheus.Counter
}

// policySeries are the counters of a policy.
type policySeries struct {
	unknownTier, abandoned, bans prometheus.Counter

	settled, settleFailed, settleDropped prometheus.Counter

	stricter, laxer prometheus.Counter // divergences: the candidate is
	keys            *distinct
}

// Observe implements ratelimit.Observer.
func (m *Metrics) Observe(_ context.Context, e ratelimit.Event) {
	switch e.Kind {
	case ratelimit.Decided:
		m.decided(&e)
	case ratelimit.UnknownTier:
		m.find(e.Policy, "").unknownTier.Inc() // not by e.Tier, which may be the client's
	case ratelimit.Abandoned:
		for i := range e.Verdict.Policies {
			m.find(e.Verdict.Policies[i].Name, "").abandoned.Inc()
		}
	case ratelimit.Diverged:
		if s := m.find(e.Policy, ""); e.Live.Allowed {
			s.stricter.Inc()
		} else {
			s.laxer.Inc()
		}
	case ratelimit.Settled:
		m.settled(&e)
	case ratelimit.SettleDropped:
		m.find(e.Policy, "").settleDropped.Inc()
	case ratelimit.Banned:
		m.find(e.Policy, "").bans.Inc()
	}
}

func (m *Metrics) settled(e *ratelimit.Event) {
	m.lag.Observe(e.Elapsed.Seconds())
	if s := m.find(e.Policy, ""); e.Err != nil {
		s.settleFailed.Inc()
	} else {
		s.settled.Inc()
	}
}

// decided counts one request. Every request waits for it: it takes no lock that
// all share, and allocates nothing.
func (m *Metrics) decided(e *ratelimit.Event) {
	v := &e.Verdict
	if e.Policy != "" {
		m.find(e.Policy, "").outcomes[ratelimit.OutcomeKeyError].Inc()
	}
	if len(v.Policies) == 0 {
		return // nobody was asked
	}
	m.bySource[min(v.Source(), algorithms.Local)].Observe(e.Elapsed.Seconds())
	for i := range v.Policies {
		p := &v.Policies[i]
		s, outcome := m.find(p.Name, p.Tier), v.Outcome(i)
		s.outcomes[outcome].Inc()
		s.keys.add(p.KeyHash)
	}
}

// find returns the counters of a policy's tier.
func (m *Metrics) find(policy, tier string) *series {
	if s, ok := (*m.series.Load())[seriesName{policy, tier}]; ok {
		return s
	}
	return m.add(policy, tier)
}

// add makes the counters of a policy's tier, all of them: a series that begins
// with its first denial would hide that from rate().
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
	s, label := &series{policySeries: p}, strings.ToValidUTF8(tier, "\uFFFD") // a label is text, a tier any string
	for outcome := range s.outcomes {
		s.outcomes[outcome] = m.requests.WithLabelValues(policy, label, ratelimit.Outcome(outcome).String())
	}
	all := maps.Clone(*m.series.Load())
	all[name] = s
	m.series.Store(&all)
	return s
}

func (m *Metrics) newPolicy(policy string) *policySeries {
	allowed, denied := ratelimit.OutcomeAllowed.String(), ratelimit.OutcomeDenied.String()
	return &policySeries{
		unknownTier: m.unknownTier.WithLabelValues(policy),
		abandoned:   m.abandoned.WithLabelValues(policy),
		bans:        m.bans.WithLabelValues(policy),

		settled:       m.settlements.WithLabelValues(policy, "made"),
		settleFailed:  m.settlements.WithLabelValues(policy, "failed"),
		settleDropped: m.settlements.WithLabelValues(policy, "dropped"),

		stricter: m.divergences.WithLabelValues(policy, allowed, denied),
		laxer:    m.divergences.WithLabelValues(policy, denied, allowed),
		keys:     newDistinct(time.Now()),
	}
}

var (
	distinctKeys = prometheus.NewDesc("ratelimit_distinct_keys",
		"Different keys that a policy has met within the last hour or a little more, give or take some per cent.", []string{"policy"}, nil)
	topOffender = prometheus.NewDesc("ratelimit_top_offender_denial_ratio",
		"Part of a policy's recent denials that one key has at least.", []string{"policy"}, nil)
)

// collectPolicies collects what is worked out at each scrape.
func (m *Metrics) collectPolicies(ch chan<- prometheus.Metric) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	for policy, p := range m.policies {
		ch <- prometheus.MustNewConstMetric(distinctKeys, prometheus.GaugeValue, float64(p.keys.estimate(now)), policy)
	}
	m.collectOffenders(ch)
}
