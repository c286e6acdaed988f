package console

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/middleware"
	"github.com/penstock-go/penstock/middleware/internal/ban"
	"github.com/penstock-go/penstock/middleware/internal/wrapped"
)

// An Explanation says how a policy would decide a request of the subject, and
// why.
type Explanation struct {
	Subject Subject

	// Override is the override in force; nil means none.
	Override *ratelimit.Override

	// Limits are all limits of the configuration and the override, at most one in
	// force. LimitOf's is missing.
	Limits []LimitState

	// Denied reports whether the policy would deny a request of one unit now.
	Denied bool

	// Reason is ByBan, or the reason of the limit in force, if there is one.
	Reason Reason

	// ClearsAfter is the time until the policy would admit the request;
	// [algorithms.Never] if waiting cannot help.
	ClearsAfter time.Duration
}

// A LimitState is a limit and its state for one key; see [algorithms.Decision].
type LimitState struct {
	Reason  Reason
	Tier    string // for ByTier
	Limit   algorithms.Limit
	InForce bool // this limit decides

	Remaining  int64
	ResetAfter time.Duration
	UnitAfter  time.Duration
	Source     algorithms.Source

	// Stored is the key in Redis, if it is there.
	Stored string

	name string // under which the state is stored
}

// A Reason says which limit decides, or that a ban does.
type Reason string

const (
	// ByDefault: Policy.Limit.
	ByDefault Reason = "default"
	// ByTier: one of Policy.Tiers.
	ByTier Reason = "tier"
	// ByOverride: the limit of an override.
	ByOverride Reason = "override"
	// ByCandidate: Policy.Candidate, which is never in force.
	ByCandidate Reason = "candidate"
	// ByBan: Policy.Ban, or an override that bans the key.
	ByBan Reason = "ban"
)

// Explain returns the state of a key. It takes no units.
func (c *Console) Explain(ctx context.Context, s Subject) (Explanation, error) {
	t, err := c.one(s)
	if err != nil {
		return Explanation{}, err
	}
	e := Explanation{Subject: t.Subject, Override: t.override, Limits: t.limits()}
	for i := range e.Limits {
		if err := t.look(ctx, &e.Limits[i]); err != nil {
			return Explanation{}, err
		}
	}
	if err := t.judge(ctx, &e); err != nil {
		return Explanation{}, err
	}
	return e, nil
}

// mode returns the mode in force.
func (t *target) mode() ratelimit.Mode {
	switch {
	case t.override == nil:
		return ratelimit.ModeOn
	case t.policy.Shadow && t.override.Mode != ratelimit.ModeOff:
		return ratelimit.ModeShadow // a shadow policy bans no key
	default:
		return t.override.Mode
	}
}

// limits returns all limits under which the key may have a state.
func (t *target) limits() []LimitState {
	p := t.policy
	all := []LimitState{{Reason: ByDefault, Limit: p.Limit, name: p.Name}}
	for _, tier := range slices.Sorted(maps.Keys(p.Tiers)) {
		all = append(all, LimitState{Reason: ByTier, Tier: tier, Limit: p.Tiers[tier], name: p.Name})
	}
	limit, reason := t.inForce()
	if reason == ByOverride {
		all = append(all, LimitState{Reason: reason, Limit: limit, name: p.Name})
	}
	if p.Candidate != nil {
		all = append(all, LimitState{Reason: ByCandidate, Limit: *p.Candidate, name: candidate(p.Name)})
	}
	decides := t.mode() != ratelimit.ModeOff && t.mode() != ratelimit.ModeBanned
	for i := range all {
		l := &all[i]
		l.InForce = decides && l.Reason == reason && (reason != ByTier || l.Tier == t.Tier)
	}
	return all
}

// look fills in the state of a limit.
func (t *target) look(ctx context.Context, l *LimitState) error {
	checks := []algorithms.Check{{Policy: l.name, Key: t.Key, Limit: l.Limit, Exact: true}}
	if err := t.ask(ctx, checks); err != nil {
		return err
	}
	d := &checks[0].Decision
	l.Remaining, l.ResetAfter, l.UnitAfter, l.Source = d.Remaining, d.ResetAfter, d.UnitAfter, d.Source
	_, limiter := t.m.Limiter()
	if store, ok := wrapped.Find[interface{ StoredKey(algorithms.Check) string }](limiter); ok {
		l.Stored = store.StoredKey(checks[0])
	}
	return nil
}

// judge fills in whether the policy denies, and why.
func (t *target) judge(ctx context.Context, e *Explanation) error {
	for _, l := range e.Limits {
		if !l.InForce {
			continue
		}
		e.Reason = l.Reason
		if l.Remaining < 1 && !t.policy.Shadow && t.mode() == ratelimit.ModeOn {
			e.Denied, e.ClearsAfter = true, l.UnitAfter
		}
	}
	switch t.mode() {
	case ratelimit.ModeBanned:
		e.Denied, e.Reason, e.ClearsAfter = true, ByBan, algorithms.Never
		if until := t.override.Until; !until.IsZero() {
			e.ClearsAfter = max(0, time.Until(until))
		}
	case ratelimit.ModeOn:
		return t.judgeBan(ctx, e)
	}
	return nil
}

// judgeBan fills in whether Policy.Ban denies.
func (t *target) judgeBan(ctx context.Context, e *Explanation) error {
	if t.policy.Ban == nil {
		return nil
	}
	asks := []algorithms.Check{{Exact: true}}
	ban.New(t.Policy, ban.Rule(*t.policy.Ban)).Check(&asks[0], t.Key)
	if err := t.ask(ctx, asks); err != nil {
		return err
	}
	if d := &asks[0].Decision; !d.Allowed && d.Source != algorithms.Undecided {
		e.Denied, e.Reason, e.ClearsAfter = true, ByBan, max(e.ClearsAfter, d.RetryAfter)
	}
	return nil
}
