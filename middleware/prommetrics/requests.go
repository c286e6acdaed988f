// The counts of requests, as events report them, and the series of their policies.

package prommetrics

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/keyfunc"
	"github.com/penstock-go/penstock/middleware"
)

// Observe implements ratelimit.Observer.
func (m *Metrics) Observe(ctx context.Context, e ratelimit.Event) {
	switch e.Kind {
	case ratelimit.Decided:
		m.decided(ctx, &e)
	case ratelimit.Settled:
		m.settle(&e)
	case ratelimit.Abandoned:
		m.abandoned.Inc()
	case ratelimit.Banned:
		m.bans.WithLabelValues(e.Policy).Inc()
	case ratelimit.Diverged:
		m.divergences.WithLabelValues(e.Policy, decisions[e.Live.Allowed], decisions[e.Candidate.Allowed]).Inc()
	case ratelimit.Registered:
		m.register(e.Middleware)
	case ratelimit.Unregistered:
		m.unregister(e.Middleware)
	}
}

var decisions = map[bool]string{true: "allowed", false: "denied"}

// decided counts one request. Every request waits for it, so it allocates nothing,
// and takes no lock that all requests share.
func (m *Metrics) decided(ctx context.Context, e *ratelimit.Event) {
	v := &e.Verdict
	m.byResult[v.Result()].Inc()
	now := time.Since(m.made)
	m.seconds.Add(offered, now)
	if v.Allowed {
		m.seconds.Add(admitted, now)
	}
	if e.Policy != "" { // its key is an error, so the verdict does not hold it
		m.count(m.find(e.Policy, ""), seriesName{e.Policy, ""}, ratelimit.OutcomeKeyError).Inc()
	}
	if v.Asked() {
		m.observe(ctx, e)
	}
	for i := range v.Policies {
		p := &v.Policies[i]
		s := m.find(p.Name, p.Tier)
		m.count(s, seriesName{p.Name, p.Tier}, p.Outcome).Inc()
		if p.Near() {
			s.near.Inc()
		}
		if p.UnknownTier {
			m.unknownTier.WithLabelValues(p.Name).Inc()
		}
	}
}

// observe observes the duration of a decision, with an exemplar if the request has one.
func (m *Metrics) observe(ctx context.Context, e *ratelimit.Event) {
	// A limiter of another module may report a source that does not exist.
	durations, elapsed := m.bySource[min(e.Verdict.Source(), algorithms.Local)], e.Elapsed.Seconds()
	if m.exemplar != nil {
		if labels := m.exemplar(ctx); len(labels) > 0 {
			durations.(prometheus.ExemplarObserver).ObserveWithExemplar(elapsed, labels)
			return
		}
	}
	durations.Observe(elapsed)
}

func (m *Metrics) settle(e *ratelimit.Event) {
	result := "made"
	switch {
	case errors.Is(e.Err, ratelimit.ErrNotSettled):
		result = "dropped"
	case e.Err != nil:
		result = "failed"
	}
	m.settlements.WithLabelValues(result).Inc()
	if result != "dropped" { // nothing was tried then, so there is no delay
		m.lag.Observe(e.Elapsed.Seconds())
	}
}

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
