package middleware

import (
	"context"
	"fmt"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/algorithms/overrides"
)

// An Explanation says what would become of a request, and why.
type Explanation struct {
	Subject Subject

	// Override is the override in force; nil if there is none.
	Override *overrides.Override

	// Limits are all limits under which the key may have used something; at most
	// one is in force.
	Limits []LimitState

	// Denied is whether the policy would deny a request of one unit now, and
	// Reason why: ByBan, or that of the limit in force. Until then it is how
	// long, if nobody else spends; algorithms.Never if no wait helps.
	Denied      bool
	Reason      Reason
	ClearsAfter time.Duration
}

// A LimitState is a limit, and what a key has left of it.
type LimitState struct {
	Reason  Reason
	Tier    string // of ByTier
	Limit   algorithms.Limit
	InForce bool // it decides about the subject; no other does

	// Remaining, ResetAfter, UnitAfter and Source are those of a decision that
	// takes nothing.
	Remaining  int64
	ResetAfter time.Duration
	UnitAfter  time.Duration
	Source     algorithms.Source

	// Stored is the key that Redis has the state under; "" if it is not in Redis.
	Stored string

	policy string // that its key is stored under
}

// A Reason is why a limit holds, or a request is denied.
type Reason uint8

const (
	// ByDefault: Policy.Limit.
	ByDefault Reason = iota
	// ByTier: one of Policy.Tiers.
	ByTier
	// ByOverride: one of Options.Overrides.
	ByOverride
	// ByCandidate: Policy.Candidate, which is never in force.
	ByCandidate
	// ByBan: an override that has no limit, and denies; or Policy.Ban.
	ByBan
)

// String returns "default", "tier", "override", "candidate" or "ban".
func (r Reason) String() string {
	switch r {
	case ByDefault:
		return "default"
	case ByTier:
		return "tier"
	case ByOverride:
		return "override"
	case ByCandidate:
		return "candidate"
	case ByBan:
		return "ban"
	default:
		return "unknown"
	}
}

// Explain says what holds for a subject and what it has left. It takes nothing.
func (c *Console) Explain(ctx context.Context, s Subject) (Explanation, error) {
	t, err := c.one(s)
	if err != nil {
		return Explanation{}, err
	}
	e := Explanation{Subject: s, Override: t.override, Limits: t.limits()}
	for i := range e.Limits {
		if err := t.look(ctx, &e.Limits[i]); err != nil {
			return Explanation{}, err
		}
	}
	e.judge(t.policy.Shadow)
	return e, t.lookForBan(ctx, &e)
}

// lookForBan asks whether the key is banned for its denials.
func (t *target) lookForBan(ctx context.Context, e *Explanation) error {
	if t.policy.banner == nil || (e.Override != nil && e.Override.Mode != overrides.On) {
		return nil
	}
	checks := []algorithms.Check{t.policy.banner.check()}
	checks[0].Key, checks[0].Exact = t.Key, true
	if err := t.m.limiter.Allow(ctx, checks); err != nil {
		return fmt.Errorf("middleware: %w", err)
	}
	if d := &checks[0].Decision; !d.Allowed {
		e.Denied, e.Reason, e.ClearsAfter = true, ByBan, max(e.ClearsAfter, d.RetryAfter)
	}
	return nil
}

// look fills in the state of a limit.
func (t *target) look(ctx context.Context, l *LimitState) error {
	checks := []algorithms.Check{{Policy: l.policy, Key: t.Key, Limit: l.Limit, Exact: true}}
	if err := t.m.limiter.Allow(ctx, checks); err != nil {
		return fmt.Errorf("middleware: %w", err)
	}
	d := &checks[0].Decision
	l.Remaining, l.ResetAfter, l.UnitAfter, l.Source = d.Remaining, d.ResetAfter, d.UnitAfter, d.Source
	if store, ok := t.m.limiter.(interface{ StoredKey(algorithms.Check) string }); ok {
		l.Stored = store.StoredKey(checks[0])
	}
	return nil
}

// judge fills in what follows from the rest, for a policy that may be a shadow.
func (e *Explanation) judge(shadow bool) {
	mode := overrides.On
	if e.Override != nil {
		mode = e.Override.Mode
	}
	for i := range e.Limits {
		l := &e.Limits[i]
		switch {
		case mode == overrides.Off || mode == overrides.Banned && !shadow:
			l.InForce = false
		case l.InForce:
			e.Reason = l.Reason
			e.Denied = !shadow && mode == overrides.On && l.Remaining < 1
			if e.Denied {
				e.ClearsAfter = l.UnitAfter
			}
		}
	}
	if mode == overrides.Banned && !shadow {
		e.Denied, e.Reason, e.ClearsAfter = true, ByBan, algorithms.Never
		if !e.Override.Until.IsZero() {
			e.ClearsAfter = max(0, time.Until(e.Override.Until))
		}
	}
}
