package ratelimit

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/headers"
	"github.com/penstock-go/penstock/internal/keyaccess"
	"github.com/penstock-go/penstock/keyfunc"
	"github.com/penstock-go/penstock/middleware/internal/ban"
	"github.com/penstock-go/penstock/middleware/internal/findings"
	"github.com/penstock-go/penstock/middleware/internal/joined"
	"github.com/penstock-go/penstock/middleware/internal/limits"
	"github.com/penstock-go/penstock/middleware/internal/problem"
	"github.com/penstock-go/penstock/middleware/internal/settle"
	"github.com/penstock-go/penstock/middleware/internal/shares"
	"github.com/penstock-go/penstock/middleware/internal/topk"
)

// A config is compiled from policies. It is immutable: one config decides and
// answers a request, even if an Update comes in between.
type config struct {
	limiter   algorithms.Limiter // of the Middleware
	given     []Policy
	policies  []*policy    // hidden ones last
	kinds     limits.Kinds // of all their limits
	pairs     bool         // a policy has ShareBy or After
	readsKeys bool         // a key may be an API key's account
	answers   problem.Answers
}

// A policy is a Policy, compiled for requests.
type policy struct {
	Policy
	countsClient bool     // the key is one client's own; otherwise all share the limit, and denied ones get slots
	settles      bool     // units may be returned or forced after the decision
	onRoute      bool     // the key has the route of the request
	challenges   []string // of API keys: the key, or the tenant's, may be the account of one

	base      *limits.Limit
	tiers     map[string]*limits.Limit
	candidate *limits.Limit // nil: none
	trial     string        // the candidate's name
	bans      *ban.Bans     // nil: none
	settling  settle.Policy
	denied    *topk.Tally
	wouldDeny *topk.Tally // by the candidate
	near      *topk.Tally
	findings  *findings.Policy
	tenants   *shares.Table // nil: the limit is not shared by tenants
	shares    string        // the name of their shares
}

func (m *Middleware) newConfig(policies []Policy) (*config, error) {
	var errs []error
	if len(policies) == 0 {
		errs = append(errs, errors.New("ratelimit: no policies: pass at least one"))
	}
	names := make(map[string]bool)
	c := &config{limiter: m.limiter}
	for _, p := range policies {
		errs = append(errs, p.validate())
		if names[p.Name] {
			errs = append(errs, fmt.Errorf("ratelimit: two policies are named %q: give each its own name", p.Name))
		}
		names[p.Name] = true
		for _, l := range p.limits() {
			c.kinds.Add(l)
		}
	}
	errs = append(errs, validatePairs(policies))
	errs = append(errs, joined.Prefix("ratelimit", c.kinds.Validate())...)
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return c, c.compile(m, policies)
}

func (c *config) compile(m *Middleware, policies []Policy) error {
	var errs []error
	for _, p := range policies {
		compiled, err := m.compilePolicy(p)
		errs = append(errs, err)
		c.given, c.policies = append(c.given, compiled.Policy), append(c.policies, compiled)
		c.readsKeys, c.pairs = c.readsKeys || len(compiled.challenges) > 0, c.pairs || p.divides() || p.After != ""
		if !p.Shadow {
			c.answers.Add(p.Name, compiled.challenges)
		}
	}
	// A Cluster takes the slots of a call in order. Capacity of all clients
	// comes last, so that a denial by another policy never touches it. Shadows
	// come after the policies that decide.
	slices.SortStableFunc(c.policies, func(a, b *policy) int { return cmp.Compare(a.rank(), b.rank()) })
	c.policies = adjoin(c.policies)
	return errors.Join(errs...)
}

func (m *Middleware) compilePolicy(p Policy) (*policy, error) {
	p.Tiers, p.Weights = maps.Clone(p.Tiers), maps.Clone(p.Weights) // the caller may change its own maps
	if p.Candidate != nil {
		candidate := *p.Candidate
		p.Candidate = &candidate
	}
	if p.Ban != nil {
		ban := *p.Ban
		p.Ban = &ban
	}
	base, err := limits.New(p.Name, p.Limit, p.advertised())
	if p.Key == (keyfunc.Key{}) {
		p.Key = m.clientKey // also for programs that read Policies
	}
	info, _ := p.Key.Inspect()       // it is valid
	tenant, _ := p.ShareBy.Inspect() // the zero Key has no challenges
	onRoute := slices.Contains(info.Kinds, keyaccess.Route)
	tries := p.Candidate != nil && p.Candidate.Algorithm().Concurrent()
	seen := m.finder.Policy(p.Name, info.ByClientIP && m.noProxies, onRoute, m.waitsTooLong(p.Limit))
	compiled := &policy{
		Policy: p, base: base, tiers: make(map[string]*limits.Limit, len(p.Tiers)), findings: seen,
		countsClient: !p.Capacity && !all(info.Kinds, keyaccess.IsPublic), settles: p.Cost != nil || p.ChargeIf != nil || tries,
		onRoute: onRoute, challenges: slices.Concat(info.Challenges, tenant.Challenges),
		denied: new(topk.Tally), wouldDeny: new(topk.Tally), near: new(topk.Tally),
		settling: settle.Policy{
			Name: p.Name, Priced: p.Cost != nil, ChargeIf: p.ChargeIf, Ended: seen.SeeEnding, Holds: new(settle.Holds), Held: seen.SeeHold,
		},
	}
	for tier, l := range p.Tiers {
		described, tierErr := limits.New(p.Name, l, p.advertised())
		err = errors.Join(err, tierErr)
		compiled.tiers[tier] = described
	}
	if p.divides() {
		compiled.tenants, compiled.shares = shares.New(shares.Stay(p.Limit)), p.Name+shareSuffix
	}
	if p.Ban != nil {
		compiled.bans = ban.New(p.Name, ban.Rule(*p.Ban))
	}
	if p.Candidate != nil {
		compiled.candidate, compiled.trial = &limits.Limit{Limit: *p.Candidate}, p.Name+candidateSuffix
	}
	return compiled, err
}

// waitsTooLong reports whether the burst comes back within a second, so that clients
// who wait for whole seconds cannot use the rate.
func (m *Middleware) waitsTooLong(l algorithms.Limit) bool {
	unit := l.Window() / time.Duration(max(l.Requests(), 1))
	return l.Burst() < l.Requests() && unit*time.Duration(l.Burst()) < time.Second && m.dialect&headers.Milliseconds == 0
}

// candidateSuffix follows the name of a policy in the name of its candidate.
const candidateSuffix = "~candidate"

// replace keeps what requests have shown of the policy that p replaces.
func (p *policy) replace(old *policy) {
	p.denied, p.wouldDeny, p.near, p.settling.Holds = old.denied, old.wouldDeny, old.near, old.settling.Holds
	p.findings.Replace(old.findings)
	if p.tenants != nil && old.tenants != nil {
		p.tenants = old.tenants
	}
}

// rank orders policies: shadows after all others; capacity and hidden policies
// after advertised ones.
func (p *policy) rank() int {
	rank := 0
	if p.Hidden {
		rank = 1
	}
	if p.Capacity {
		rank = 2
	}
	if p.Shadow {
		rank += 3
	}
	return rank
}

func (c *config) policy(name string) *policy {
	for _, p := range c.policies {
		if p.Name == name {
			return p
		}
	}
	return nil
}
