// Pairs of checks: the share of a tenant and the limit that tenants share (Policy.ShareBy), and two policies of which one
// stands behind the other (Policy.After). Package shares says how large a share is.

package ratelimit

import (
	"errors"
	"fmt"
	"hash/maphash"
	"maps"
	"slices"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/internal/keyaccess"
	"github.com/penstock-go/penstock/keyfunc"
	"github.com/penstock-go/penstock/middleware/internal/joined"
	"github.com/penstock-go/penstock/middleware/internal/shares"
)

// shareSuffix follows the name of a policy in the name of its shares.
const shareSuffix = "~share"

// divides reports whether tenants share the policy's limit.
func (p *Policy) divides() bool { return p.ShareBy != (keyfunc.Key{}) }

func (p *Policy) validateShares() error {
	if !p.divides() {
		if len(p.Weights) > 0 {
			return errors.New("the field Weights needs ShareBy")
		}
		return nil
	}
	var errs []error
	info, err := p.ShareBy.Inspect()
	errs = append(errs, joined.Prefix("ShareBy", err)...)
	verified := func(kind string) bool { return kind == keyaccess.User || keyaccess.IsPublic(kind) }
	if err == nil && (!info.Identity || !all(info.Kinds, verified)) {
		errs = append(errs, errors.New("the field ShareBy needs a verified identity, keyfunc.APIKey or keyfunc.User: a client could invent others, and have a share for each"))
	}
	info, err = p.Key.Inspect()
	if err != nil && p.Key == (keyfunc.Key{}) || err == nil && !all(info.Kinds, keyaccess.IsPublic) {
		errs = append(errs, errors.New("the field ShareBy needs a Key that clients share, such as keyfunc.Const"))
	}
	if p.Ban != nil || p.Candidate != nil {
		errs = append(errs, errors.New("the fields ShareBy and Ban or Candidate cannot be combined"))
	}
	if p.Limit.Validate() == nil {
		errs = append(errs, p.validatePaired(p.Limit))
	}
	for _, tier := range slices.Sorted(maps.Keys(p.Weights)) {
		if w := p.Weights[tier]; w < 1 || w > shares.MaxWeight {
			errs = append(errs, fmt.Errorf("the weight of tier %q is %d: want 1 to %d", tier, w, shares.MaxWeight))
		}
	}
	return errors.Join(errs...)
}

func all(kinds []string, is func(string) bool) bool {
	return !slices.ContainsFunc(kinds, func(kind string) bool { return !is(kind) })
}

// validatePaired reports why a limit cannot be one that tenants share.
func (p *Policy) validatePaired(l algorithms.Limit) error {
	if p.divides() && !l.Step().Row.Reserves && l.Burst() > 0 {
		return fmt.Errorf("the field ShareBy does not work with a %v: use a TokenBucket, a FixedWindow or a calendar's limit", l.Algorithm())
	}
	return nil
}

// validatePairs reports the misconfigurations of After.
func validatePairs(policies []Policy) error {
	var errs []error
	behind := make(map[string]bool)
	for i := range policies {
		p := &policies[i]
		if p.After == "" {
			continue
		}
		refuse := func(format string, args ...any) {
			errs = append(errs, fmt.Errorf("ratelimit: policy %q: the field After "+format, append([]any{p.Name}, args...)...))
		}
		at := slices.IndexFunc(policies, func(other Policy) bool { return other.Name == p.After })
		switch {
		case at < 0:
			refuse("names %q, which is no policy here", p.After)
			continue
		case at == i, policies[at].After != "", behind[p.After]:
			refuse("makes a chain or a ring: only two policies may be a pair")
			continue
		}
		behind[p.After] = true
		first := &policies[at]
		if p.divides() || first.divides() || p.Shadow || first.Shadow || p.Capacity || first.Capacity || p.Candidate != nil || first.Candidate != nil {
			refuse("cannot be combined with ShareBy, Shadow, Capacity or Candidate in either of the two policies")
		}
		if p.Ban != nil {
			refuse("and Ban cannot be combined: put the Ban into %q", p.After)
		}
		if p.Fail != first.Fail {
			refuse("needs the same Fail in both policies: got %v and %v", p.Fail, first.Fail)
		}
	}
	return errors.Join(errs...)
}

// adjoin puts each policy that stands behind another just behind it. Both have the place of the other.
func adjoin(policies []*policy) []*policy {
	var sorted []*policy
	for _, p := range policies {
		if p.After != "" {
			continue
		}
		sorted = append(sorted, p)
		for _, second := range policies {
			if second.After == p.Name {
				sorted = append(sorted, second)
			}
		}
	}
	return sorted
}

// stands reports whether a policy applies behind the other one of its pair. It does not if that one does not apply or
// denies nothing.
func (q *request) stands(p *policy) bool {
	n := len(q.parts)
	return n > 0 && q.parts[n-1].policy.Name == p.After && !q.parts[n-1].shadow
}

// A tenant is one of those who share a limit. The zero tenant has no share.
type tenant struct {
	start, end int // of its key in request.keys
	weight     int64
	announce   bool // to the other instances
}

// tenant appends the key of the tenant. A request that ShareBy does not count has no share.
func (p *policy) tenant(keys []byte, r *keyfunc.Request) ([]byte, tenant, error) {
	start := len(keys)
	all, tier, err := p.ShareBy.Append(keys, r)
	switch {
	case errors.Is(err, keyfunc.ErrNotCounted):
		return keys, tenant{}, nil
	case err != nil:
		return keys, tenant{}, err
	}
	return all, tenant{start: start, end: len(all), weight: max(1, p.Weights[tier])}, nil
}

// addShare adds the check of a tenant's share, just before that of the limit. In shadow, both are trials, because the
// limit's own check does not depend on another then.
func (q *request) addShare(a *part, op algorithms.Op, fail algorithms.FailureMode) {
	p, tenant, weight := a.policy, q.subject(a), a.tenant.weight
	sum, announce := p.tenants.Ask(maphash.String(keySeed, tenant), weight, time.Since(q.m.made))
	a.tenant.announce = announce
	c, place := q.newCheck()
	a.share = place
	c.Limit = shares.Of(a.limit, weight, sum, a.cost)
	c.Policy, c.Key, c.Cost, c.Op, c.Fail, c.Exact = p.shares, tenant, a.cost, op, fail, p.ChargeIf != nil
}

// subject returns whom a part counts: the tenant, if the policy has shares, otherwise its key.
func (q *request) subject(a *part) string {
	if a.tenant.weight > 0 {
		return q.text(a.tenant.start, a.tenant.end)
	}
	return q.key(a)
}

// pairUp reads the answers to pairs: who borrows, and which of two policies speaks.
func (q *request) pairUp() {
	for i := range q.parts {
		a := &q.parts[i]
		switch {
		case a.share >= 0:
			share := &q.checks[a.share].Decision
			a.borrowed = !share.Allowed
			switch {
			case !a.tenant.announce:
			case share.Source == algorithms.Shared:
				a.policy.tenants.Announce(q.http.Context(), q.m.limiter, a.policy.Name, q.subject(a), a.tenant.weight, q.m.made)
			default:
				a.policy.tenants.Alone()
			}
			if a.shadow && share.Allowed { // both were trials, and the limit's did not know of the share
				q.checks[a.own].Decision.Allowed = true
			}
		case a.policy.After != "" && a.own >= 0 && !q.looks: // a look shows both
			first := &q.parts[i-1] // identify has put it there
			// Of a denied pair, the policy speaks that will be charged next.
			d, own := &q.checks[first.own].Decision, &q.checks[a.own].Decision
			if d.Allowed || d.Source == algorithms.Undecided || !own.Allowed && d.RetryAfter <= own.RetryAfter || first.ban >= 0 && first.deniedByBan(q.checks) {
				a.spared = true
			} else {
				first.spared = true
			}
		}
	}
}

// charges reports whether a check of a part was charged, if the request is admitted. Of a pair, only one may be.
func (q *request) charges(a *part, place int) bool {
	if place == a.share {
		return !a.borrowed
	}
	return !a.spared
}
