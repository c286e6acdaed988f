package prommetrics

import (
	"context"
	"errors"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/middleware"
)

// Observe implements ratelimit.Observer.
func (m *Metrics) Observe(_ context.Context, e ratelimit.Event) {
	switch e.Kind {
	case ratelimit.Decided:
		m.decided(&e)
	case ratelimit.Settled:
		m.settled(&e)
	case ratelimit.Abandoned:
		for i := range e.Verdict.Policies {
			m.find(e.Verdict.Policies[i].Name, "").abandoned.Inc()
		}
	case ratelimit.Banned:
		m.find(e.Policy, "").bans.Inc()
	case ratelimit.Diverged:
		if s := m.find(e.Policy, ""); e.Live.Allowed {
			s.stricter.Inc()
		} else {
			s.laxer.Inc()
		}
	case ratelimit.Registered:
		m.register(e.Middleware)
	case ratelimit.Unregistered:
		m.unregister(e.Middleware)
	}
}

// decided counts one request. Every request waits for it, so it allocates nothing,
// and takes no lock that all requests share.
func (m *Metrics) decided(e *ratelimit.Event) {
	v := &e.Verdict
	if e.Policy != "" { // its key is an error, so the verdict does not hold it
		m.find(e.Policy, "").outcomes[ratelimit.OutcomeKeyError].Inc()
	}
	if len(v.Policies) == 0 {
		return // no limiter decided, so there is no duration
	}
	// A limiter of another module may report a source that does not exist.
	m.bySource[min(v.Source(), algorithms.Local)].Observe(e.Elapsed.Seconds())
	for i := range v.Policies {
		p := &v.Policies[i]
		s := m.find(p.Name, p.Tier)
		s.outcomes[p.Outcome].Inc()
		if p.UnknownTier {
			s.unknownTier.Inc()
		}
	}
}

func (m *Metrics) settled(e *ratelimit.Event) {
	s := m.find(e.Policy, "")
	switch {
	case errors.Is(e.Err, ratelimit.ErrNotSettled):
		s.settleDropped.Inc() // nothing was tried, so there is no delay
		return
	case e.Err != nil:
		s.settleFailed.Inc()
	default:
		s.settled.Inc()
	}
	m.lag.Observe(e.Elapsed.Seconds())
}
