package prommetrics

import (
	"context"
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/penstock-go/penstock/algorithms"
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
