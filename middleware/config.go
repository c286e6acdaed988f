package ratelimit

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/internal/keyaccess"
	"github.com/penstock-go/penstock/keyfunc"
	"github.com/penstock-go/penstock/middleware/internal/ban"
	"github.com/penstock-go/penstock/middleware/internal/findings"
	"github.com/penstock-go/penstock/middleware/internal/problem"
	"github.com/penstock-go/penstock/middleware/internal/settle"
	"github.com/penstock-go/penstock/middleware/internal/topk"
)

// The bodies of denials by one policy: of its limit, for a ban, and of Nobody.
type bodies struct{ exceeded, banned, closed []byte }

// A config is compiled from policies. It is immutable: one config decides and
// answers a request, even if an Update comes in between.
type config struct {
	limiter   algorithms.Limiter // of the Middleware
	given     []Policy
	policies  []*policy         // hidden ones last
	kinds     limitKinds        // of all their limits
	readsKeys bool              // a key may be an API key's account
	challenge string            // of 401
	missing   []byte            // body of 401
	bodies    map[string]bodies // by the one policy that denies
}

// A policy is a Policy, compiled for requests.
type policy struct {
	Policy
	shared       bool // all clients share the limit: denied ones get slots
	countsClient bool // the key is one client's own
	unadvertised bool // headers keep silent about the policy
	settles      bool // units may be returned or forced after the decision
	readsKeys    bool // the key may be an API key's account

	base      *limit
	tiers     map[string]*limit
	candidate *limit    // nil: none
	trial     string    // the candidate's name
	bans      *ban.Bans // nil: none
	settling  settle.Policy
	denied    *topk.Tally
	wouldDeny *topk.Tally // by the candidate
	findings  *findings.Policy
}

// newConfig compiles policies.
func (m *Middleware) newConfig(policies []Policy) (*config, error) {
	var errs []error
	if len(policies) == 0 {
		errs = append(errs, errors.New("ratelimit: no policies: pass at least one"))
	}
	names := make(map[string]bool)
	c := &config{limiter: m.limiter, bodies: make(map[string]bodies)}
	for _, p := range policies {
		errs = append(errs, p.validate())
		if names[p.Name] {
			errs = append(errs, fmt.Errorf("ratelimit: two policies are named %q: give each its own name", p.Name))
		}
		names[p.Name] = true
		for _, l := range p.limits() {
			c.kinds.add(l)
		}
	}
	errs = append(errs, lines("ratelimit", c.kinds.validate())...)
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return c, c.compile(m, policies)
}

// compile fills in a config of valid policies.
func (c *config) compile(m *Middleware, policies []Policy) error {
	var errs []error
	var challenges []string
	for _, p := range policies {
		compiled, err := m.compilePolicy(p)
		errs = append(errs, err)
		c.given, c.policies = append(c.given, compiled.Policy), append(c.policies, compiled)
		c.readsKeys = c.readsKeys || compiled.readsKeys
		if p.Shadow {
			continue
		}
		c.bodies[p.Name] = bodies{
			exceeded: problem.Body(http.StatusTooManyRequests, "quota-exceeded", p.Name),
			banned:   problem.Body(http.StatusTooManyRequests, "abnormal-usage-detected", p.Name),
			closed:   problem.Body(http.StatusForbidden, "no-requests-allowed", p.Name),
		}
		info, _ := compiled.Key.Inspect() // it is valid
		for _, challenge := range info.Challenges {
			if !slices.Contains(challenges, challenge) {
				challenges = append(challenges, challenge)
			}
		}
	}
	c.missing = problem.Body(http.StatusUnauthorized, "")
	if len(challenges) > 0 {
		c.missing = problem.WithDetail(c.missing, "The request needs a valid key in "+headersOf(challenges)+".")
	}
	// A 401 must have a challenge (RFC 9110, section 15.5.2). If the policies
	// name none, another middleware verifies identities, most likely by tokens.
	if c.challenge = strings.Join(challenges, ", "); c.challenge == "" {
		c.challenge = "Bearer"
	}
	// A Cluster takes the slots of a call in order. Capacity of all clients
	// comes last, so that a denial by another policy never touches it. Shadows
	// come after the policies that decide.
	slices.SortStableFunc(c.policies, func(a, b *policy) int { return cmp.Compare(a.rank(), b.rank()) })
	return errors.Join(errs...)
}

// headersOf names the header fields of challenges.
func headersOf(challenges []string) string {
	fields := make([]string, len(challenges))
	for i, challenge := range challenges {
		if _, field, named := strings.Cut(challenge, "header="); named {
			fields[i] = strings.Trim(field, `"`)
		} else {
			fields[i] = "Authorization: " + challenge
		}
	}
	return strings.Join(fields, " or ")
}

func (m *Middleware) compilePolicy(p Policy) (*policy, error) {
	p.Tiers = maps.Clone(p.Tiers) // the caller may change its own map
	if p.Candidate != nil {
		candidate := *p.Candidate
		p.Candidate = &candidate
	}
	if p.Ban != nil {
		ban := *p.Ban
		p.Ban = &ban
	}
	base, err := newLimit(&p, p.Limit)
	if p.Key == (keyfunc.Key{}) {
		p.Key = m.clientKey() // also for programs that read Policies
	}
	info, _ := p.Key.Inspect() // it is valid
	compiled := &policy{
		Policy: p, base: base, tiers: make(map[string]*limit, len(p.Tiers)), denied: new(topk.Tally), wouldDeny: new(topk.Tally),
		findings: m.finder.Policy(p.Name, info.ByClientIP && m.noProxies, slices.Contains(info.Kinds, keyaccess.Route)),
	}
	compiled.settling = settle.Policy{
		Name: p.Name, Priced: p.Cost != nil, ChargeIf: p.ChargeIf, Ended: compiled.findings.SeeEnding, Holds: new(settle.Holds), Held: compiled.findings.SeeHold,
	}
	tries := p.Candidate != nil && p.Candidate.Algorithm().Concurrent()
	compiled.unadvertised, compiled.settles = p.hidden(), p.Cost != nil || p.ChargeIf != nil || tries
	compiled.readsKeys = len(info.Challenges) > 0
	compiled.countsClient = !p.Capacity && slices.ContainsFunc(info.Kinds, func(kind string) bool { return !keyaccess.IsPublic(kind) })
	compiled.shared = !compiled.countsClient
	for tier, l := range p.Tiers {
		described, tierErr := newLimit(&p, l)
		err = errors.Join(err, tierErr)
		compiled.tiers[tier] = described
	}
	if p.Ban != nil {
		compiled.bans = ban.New(p.Name, ban.Rule(*p.Ban))
	}
	if p.Candidate != nil {
		compiled.candidate, compiled.trial = &limit{Limit: *p.Candidate}, p.Name+candidateSuffix
	}
	return compiled, err
}

// candidateSuffix follows the name of a policy in the name of its candidate.
const candidateSuffix = "~candidate"

// replace keeps what requests have shown of the policy that p replaces.
func (p *policy) replace(old *policy) {
	p.denied, p.wouldDeny, p.settling.Holds = old.denied, old.wouldDeny, old.settling.Holds
	p.findings.Replace(old.findings)
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

// policy returns the policy of a name, or nil.
func (c *config) policy(name string) *policy {
	for _, p := range c.policies {
		if p.Name == name {
			return p
		}
	}
	return nil
}
