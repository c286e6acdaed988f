package middleware

import (
	"context"
	"errors"
	"hash/maphash"
	"net/http"

	"github.com/penstock-go/penstock/algorithms"
)

// judge makes the verdict of the limiter's answers, or of its error.
func (d *decision) judge(m *Middleware, r *http.Request, err error) {
	v := &d.verdict
	admitted := err == nil && algorithms.Allowed(d.checks)
	if admitted || err != nil {
		d.carrier, v.Policies = newVerdictContext(d.policies)
	} else { // no handler serves it
		v.Policies = make([]PolicyVerdict, d.policies)
	}
	status, n, source, shadowed := http.StatusServiceUnavailable, 0, algorithms.Undecided, false
	for i := range d.checks {
		if err != nil {
			d.checks[i].Decision = algorithms.Decision{}
		}
		c, a := &d.checks[i], &d.asked[i]
		if c.Op == algorithms.TrialInstead || a.ban {
			continue
		}
		p := &v.Policies[n] // assigned by fields: a literal would be made and then copied
		n++
		p.Name, p.Tier, p.Private, p.Shadow = c.Policy, a.grade.tier, a.policy.Private, c.Op == algorithms.Trial
		p.Override, p.Banned = a.override, d.banned
		p.Limit, p.Decision = c.Limit, c.Decision
		if d.bannedBy(i) {
			p.Banned, p.Decision = true, d.checks[i-1].Decision
		}
		if m.observer != nil {
			a.hash = maphash.String(keySeed, c.Key)
			p.KeyHash = uint32(a.hash)
		}
		if c.Decision.Source == algorithms.Shared {
			source = algorithms.Shared
		}
		if c.Op != algorithms.Take {
			shadowed = shadowed || !c.Decision.Allowed
			continue
		}
		if !p.Decision.Allowed {
			v.RetryAfter = max(v.RetryAfter, c.Decision.RetryAfter, p.Decision.RetryAfter)
			if !a.policy.Capacity || p.Banned {
				status = http.StatusTooManyRequests
			}
		}
		v.Delay = max(v.Delay, c.Decision.Delay)
	}
	v.Degraded = !m.alone && !d.banned && source != algorithms.Shared
	switch {
	case err != nil:
		d.fail(m, r.Context(), err)
	case admitted:
		v.Allowed = true
	default:
		v.Status = status
		if !d.banned {
			m.countDenials(d)
		}
	}
	if !v.Allowed || shadowed {
		d.noteDenials(m, r.Context())
	}
	if m.observer != nil {
		d.compare(m, r.Context())
	}
}

// compare tells the observer where candidates would have decided otherwise.
func (d *decision) compare(m *Middleware, ctx context.Context) {
	for i := range d.checks {
		c := &d.checks[i]
		if c.Op != algorithms.TrialInstead {
			continue
		}
		live := &d.checks[i-1]
		if c.Decision.Source == algorithms.Undecided || live.Decision.Source == algorithms.Undecided ||
			c.Decision.Allowed == live.Decision.Allowed {
			continue
		}
		m.observer.Observe(ctx, Event{Kind: Diverged, Policy: live.Policy, Live: live.Decision, Candidate: c.Decision})
	}
}

// fail decides without the limiter.
func (d *decision) fail(m *Middleware, ctx context.Context, err error) {
	switch {
	case errors.Is(err, algorithms.ErrInvalid):
		d.verdict.failure, d.verdict.Degraded = OutcomeInvalid, false
		d.refuse(http.StatusInternalServerError, err)
		m.troubles.log("a request could not be limited, and was refused", err)
	case ctx.Err() != nil:
		// The client is gone. Serving it unlimited would be a way around the
		// limits for those who hang up at once.
		d.verdict.failure, d.verdict.Degraded = OutcomeCancelled, false
		d.refuse(http.StatusServiceUnavailable, err)
	case d.failsClosed():
		d.verdict.failure = OutcomeFailedClosed
		d.refuse(http.StatusServiceUnavailable, err)
		m.troubles.log("the limiter cannot decide; policies that fail closed refuse", err)
	default:
		d.verdict.Allowed, d.verdict.failure, d.trouble = true, OutcomeFailedOpen, err
		for i := range d.verdict.Policies {
			d.verdict.Policies[i].Decision.Allowed = true
		}
		m.troubles.log("the limiter cannot decide; requests pass", err)
	}
}

func (d *decision) failsClosed() bool {
	for i := range d.checks {
		if d.checks[i].Fail == algorithms.FailClosed { // never a shadow's
			return true
		}
	}
	return false
}
