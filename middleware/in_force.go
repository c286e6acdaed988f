// What is in force for a policy. Requests, settlements, the console, metrics and the status page all ask policy.inForce.

package ratelimit

import (
	"errors"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/middleware/internal/limits"
)

// An InForce says which limit and which mode hold for a policy, and why.
type InForce struct {
	// Limit holds, but counts no request in ModeOff and ModeBanned.
	Limit algorithms.Limit

	// From is where Limit comes from: "override", "limit_of", "tier" or "default".
	From string

	// Mode is ModeShadow also because of Policy.Shadow, unless an override says ModeOff.
	Mode Mode

	// Override is the override in force; nil means none.
	Override *Override

	// Ignored says why a limit of the override, or of LimitOf, does not hold; nil if none was refused.
	Ignored error
}

// InForce returns what holds now for a key of a policy, or for [Everyone]; false if there is no such policy. tier is the
// tier of the key's identity, and own the result of Policy.LimitOf; both may be zero.
func (m *Middleware) InForce(policy, key, tier string, own algorithms.Limit) (f InForce, found bool) {
	c := m.config.Load()
	p := c.policy(policy)
	if p == nil {
		return f, false
	}
	if o, ok := m.find(policy, key); ok {
		f.Override = &o
	}
	l, why, ignored := p.inForce(c.kinds, f.Override, &own, tier)
	f.Limit, f.From, f.Mode, f.Ignored = *l, why.from, why.mode, ignored
	return f, true
}

// Where a limit comes from: the first of these that has one counts.
const (
	fromOverride = "override"
	fromLimitOf  = "limit_of"
	fromTier     = "tier"
	fromDefault  = "default"
)

// A reason says where the limit in force comes from, and how the policy applies.
type reason struct {
	configured  *limits.Limit // nil: an override or LimitOf has the limit
	from        string
	mode        Mode
	tier        string // "": Policy.Tiers lacks the identity's
	unknownTier bool   // and so Policy.Limit holds
}

// inForce is pure. kinds are those of the other limits of the decision, o is the override in force, or nil, and own is
// what LimitOf returned: nil and the zero Limit mean that it has none. ignored says why a limit of these does not hold.
//
// The limit is a result of its own, so that an override and own may stay on the caller's stack.
func (p *policy) inForce(kinds limits.Kinds, o *Override, own *algorithms.Limit, tier string) (l *algorithms.Limit, why reason, ignored error) {
	why.mode = p.mode(o)
	configured, known := p.tiers[tier]
	if why.from = fromDefault; known {
		why.from, why.tier = fromTier, tier
	}
	if o != nil && o.Limit != (algorithms.Limit{}) && why.mode != ModeOff && why.mode != ModeBanned {
		if ignored = p.replaceable(kinds, o.Limit); ignored == nil {
			why.from = fromOverride
			return &o.Limit, why, nil
		}
	}
	if own != nil && p.LimitOf != nil && *own != (algorithms.Limit{}) {
		err := p.replaceable(kinds, *own)
		if err == nil {
			why.from = fromLimitOf
			return own, why, ignored
		}
		ignored = err
	}
	if !known {
		configured, why.unknownTier = p.base, tier != "" && len(p.tiers) > 0
	}
	why.configured = configured
	return &configured.Limit, why, ignored
}

// mode returns how the policy applies under an override, or nil.
func (p *policy) mode(o *Override) Mode {
	switch {
	case o != nil && o.Mode == ModeOff:
		return ModeOff
	case p.Shadow: // it denies nothing, so it bans no key
		return ModeShadow
	case o != nil && (o.Mode == ModeShadow || o.Mode == ModeBanned):
		return o.Mode
	default:
		return ""
	}
}

// replaceable reports why a limit must not replace the policy's, among limits of these kinds.
func (p *policy) replaceable(kinds limits.Kinds, l algorithms.Limit) error {
	kinds.Add(l)
	return errors.Join(kinds.Validate(), l.Validate(), limits.Validate(p.ChargeIf != nil, l), p.validatePaired(l))
}

// choose sets what is in force for the part of a key, and reports whether the limiter must be asked about it. A ban
// replaces all other parts.
func (q *request) choose(a *part, tier string) bool {
	p := a.policy
	var o *Override
	if q.m.overrides != nil { // without find, which would copy the override
		found, ok := Override{}, false
		if a.tenant.weight > 0 { // a Mode for the tenant comes first; a limit is never one tenant's
			found, ok = q.m.overrides.Find(p.Name, q.m.lendable(q.subject(a)))
			ok = ok && found.Mode != ""
		}
		if !ok {
			found, ok = q.m.overrides.Find(p.Name, q.m.lendable(q.key(a)))
		}
		if ok {
			o, a.override = &found, true
		}
	}
	l, why, ignored := p.inForce(q.kinds, o, nil, tier)
	switch {
	case why.mode == ModeOff, q.banned && why.mode != ModeBanned:
		return false
	case ignored != nil:
		q.m.log.Warn("invalid limit of an override", p.Name, ignored)
	}
	if p.LimitOf != nil && why.from != fromOverride {
		own, err := p.LimitOf(q.http.Request)
		switch {
		case err == nil:
			if l, why, ignored = p.inForce(q.kinds, o, &own, tier); why.from != fromLimitOf && own != (algorithms.Limit{}) {
				q.m.log.Warn("invalid limit of LimitOf", p.Name, ignored)
			}
		case q.http.Context().Err() == nil: // a hang-up is no failure
			q.m.log.Warn("failure of LimitOf", p.Name, err)
		}
	}
	if why.mode == ModeBanned {
		q.ban(a, l, &why, o.Until)
		return false
	}
	if why.configured == nil {
		q.kinds.Add(*l)
	}
	a.set(l, &why)
	return true
}

func (a *part) set(l *algorithms.Limit, why *reason) {
	a.limit = *l // alone: an assignment of several values would copy it twice
	a.configured, a.limitOf, a.shadow, a.tier, a.unknownTier = why.configured, why.from == fromLimitOf, why.mode == ModeShadow, why.tier, why.unknownTier
	a.concurrent = l.Algorithm().Concurrent()
}
