package ratelimit

import (
	"context"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/middleware/internal/settle"
)

// ErrNotSettled is wrapped by the errors of [Settle]. If too many settlements
// waited, the next Settle or the end of the handler tries again.
var ErrNotSettled = settle.ErrNotSettled

// Settle corrects the cost of a request. total is its cost so far, in units of the limits: tokens, bytes, seconds of
// work. ctx is the request's context, or derived from it. Without names, Settle corrects all policies that have a
// Cost.
//
// Until the handler returns, any goroutine may call Settle repeatedly, and the largest total counts. Units beyond the
// Cost are charged at once, even if they do not fit, into at most one burst of debt. The unused rest is returned when
// the handler returns, also after a hang-up. A cost that is never settled stays charged. Under ChargeIf, all is
// settled at the end.
//
// A window loses the units that are reserved when it turns ([algorithms.Return]). If requests may take as long as the
// window, use a bucket or a much longer window.
//
// Settle does not wait: a later failure is a Settled event. An error wraps [ErrNotSettled]: the total is negative,
// the policy has no Cost or reserved nothing, the limit is a leaky bucket or Concurrent, the handler has returned, or
// too many settlements are waiting.
func Settle(ctx context.Context, total int64, policies ...string) error {
	return settle.Total(ctx, total, policies...)
}

// reserve returns the reservations of an admitted request, below ctx, or nil if
// nothing is reserved.
func (q *request) reserve(ctx context.Context) (r *settle.Reservations) {
	for i := range q.parts {
		a := &q.parts[i]
		for _, place := range [...]int{a.own, a.candidate, a.share} {
			if place >= 0 && q.charges(a, place) {
				r = q.m.settler.Reserve(ctx, r, &a.policy.settling, a.tier, &q.checks[place])
			}
		}
	}
	return r
}

// settled reports a settlement, or why it failed.
func (m *Middleware) settled(r settle.Report) {
	switch {
	case r.Err == nil:
	case r.Dropped && r.Policy == "":
		m.log.Warn("dropped count towards a ban, or renewal of a hold", "", r.Err)
	case r.Dropped:
		m.log.Warn("dropped settlement", r.Policy, r.Err)
	default:
		m.log.Warn("failed settlement", r.Policy, r.Err)
	}
	if r.Policy != "" {
		m.observe(context.Background(), &Event{Kind: Settled, Policy: r.Policy, Err: r.Err, Elapsed: r.Elapsed})
	}
}

// inForce returns the limit that is in force now for a check of an earlier request. If its policy is gone, or LimitOf
// chose its limit, the check's own limit is in force.
func (m *Middleware) inForce(policy, tier string, c *algorithms.Check) algorithms.Limit {
	now := m.config.Load()
	p := now.policy(policy)
	switch {
	case p == nil, c.Op == algorithms.TrialInstead && p.candidate == nil:
		return c.Limit
	case c.Op == algorithms.TrialInstead:
		return p.candidate.Limit
	}
	o, _ := m.find(p.Name, c.Key) // without one, the zero Override says the same
	l, _, _ := p.inForce(now.kinds, &o, &c.Limit, tier)
	return *l
}
