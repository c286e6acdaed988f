// The policies that the page shows.

package statuspage

import (
	"reflect"
	"slices"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/middleware"
	"github.com/penstock-go/penstock/middleware/internal/shares"
)

// A policyView is a policy and its requests of the last minute.
type policyView struct {
	definition
	Overrides int               `json:"overrides"`
	Tenants   int               `json:"tenants,omitempty"` // that share the limit now, in this process
	Share     *algorithms.Limit `json:"share,omitempty"`   // of a tenant of weight 1
	Requests  uint64            `json:"requests"`
	Outcomes  map[string]uint64 `json:"outcomes,omitempty"`
	Ticks     ticks             `json:"ticks"`
	Window    int64             `json:"-"` // milliseconds
}

// A definition is the configuration of a policy, and its override of everyone.
type definition struct {
	Name      string                      `json:"name"`
	Limit     algorithms.Limit            `json:"limit"`
	Tiers     map[string]algorithms.Limit `json:"tiers,omitempty"`
	Candidate *algorithms.Limit           `json:"candidate,omitempty"`
	Fail      string                      `json:"fail"`
	Modes     []string                    `json:"modes,omitempty"`
	Everyone  *ratelimit.Override         `json:"everyone,omitempty"` // the override of all keys
	Ignored   bool                        `json:"ignored,omitempty"`  // the limit of Everyone, because it does not fit the policy

	mode ratelimit.Mode // in force for everyone
}

// policy returns the view of a policy of m.
func (p *Page) policy(m *ratelimit.Middleware, policy *ratelimit.Policy, now time.Duration) policyView {
	v := policyView{definition: newDefinition(policy, m), Outcomes: make(map[string]uint64)}
	v.Tenants, v.Share = sharesOf(m, policy)
	if minute := (*p.outcomes.Load())[policyOf{m, policy.Name}]; minute != nil {
		counts, _ := minute.Last(now)
		v.Ticks = ticks{minute.Ticks(now, allOutcomes...), minute.Ticks(now, denialOutcomes...)}
		for outcome, n := range counts {
			if n > 0 {
				v.Outcomes[ratelimit.Outcome(outcome).String()] = uint64(n)
				v.Requests += uint64(n)
			}
		}
	}
	return v
}

// sharesOf returns how many tenants share the limit in force, and the share of a weight of 1; 0 and nil without any.
func sharesOf(m *ratelimit.Middleware, policy *ratelimit.Policy) (tenants int, one *algorithms.Limit) {
	tenants, weights := m.Inside().Tenants(policy.Name)
	f, found := m.InForce(policy.Name, ratelimit.Everyone, "", algorithms.Limit{})
	if tenants == 0 || !found {
		return 0, nil
	}
	share := shares.Of(f.Limit, 1, weights, 1)
	return tenants, &share
}

func newDefinition(p *ratelimit.Policy, m *ratelimit.Middleware) definition {
	f, _ := m.InForce(p.Name, ratelimit.Everyone, "", algorithms.Limit{})
	return definition{
		Name: p.Name, Limit: p.Limit, Tiers: p.Tiers, Candidate: p.Candidate, Fail: p.Fail.String(), Modes: properties(p),
		Everyone: f.Override, Ignored: f.Ignored != nil, mode: f.Mode,
	}
}

// everyPolicy is the policy of an override for all policies, in package overrides.
const everyPolicy = "*"

// countOverrides counts the overrides of a policy, in the tables of the Middlewares that have it. They mostly have one
// table; of several, the one with most overrides counts.
func (p *policyView) countOverrides(middlewares []*ratelimit.Middleware) {
	for _, m := range middlewares {
		for _, policy := range m.Policies() {
			if policy.Name == p.Name && reflect.DeepEqual(newDefinition(&policy, m), p.definition) {
				p.Overrides = max(p.Overrides, overridesOf(m.Overrides(), p.Name))
			}
		}
	}
}

// overridesOf returns the number of overrides that hold for keys of a policy, or for keys of all policies. It looks
// at each of them, so requests must not wait for it.
func overridesOf(table ratelimit.Overrides, policy string) (n int) {
	if table, ok := table.(interface {
		Count(policy string) map[ratelimit.Mode]int
	}); ok {
		for _, place := range []string{policy, everyPolicy} {
			for _, of := range table.Count(place) {
				n += of
			}
		}
	}
	return n
}

// properties returns one word for each unusual property of a policy's configuration.
func properties(p *ratelimit.Policy) (all []string) {
	for _, property := range []struct {
		name string
		on   bool
	}{
		{"shadow", p.Shadow}, {"hidden", p.Hidden}, {"capacity", p.Capacity}, {"limit-of", p.LimitOf != nil},
		{"shares", p.ShareBy != (ratelimit.Policy{}).ShareBy}, {"after " + p.After, p.After != ""}, {"cost", p.Cost != nil}, {"charge-if", p.ChargeIf != nil}, {"ban", p.Ban != nil}, {"skip", p.Skip != nil},
	} {
		if property.on {
			all = append(all, property.name)
		}
	}
	return all
}

// addPolicy adds a policy. Policies with the same definition, of several
// Middlewares, are one policy to an operator: their counts add up.
func (v *view) addPolicy(p policyView) {
	i := slices.IndexFunc(v.Policies, func(other policyView) bool {
		return other.Name == p.Name && reflect.DeepEqual(other.definition, p.definition)
	})
	if i < 0 {
		v.Policies = append(v.Policies, p)
		return
	}
	known := &v.Policies[i]
	if p.Tenants > known.Tenants {
		known.Tenants, known.Share = p.Tenants, p.Share
	}
	known.Requests += p.Requests
	for outcome, n := range p.Outcomes {
		known.Outcomes[outcome] += n
	}
	known.Ticks.add(p.Ticks)
}

// outcomes is how many outcomes there are.
const outcomes = int(ratelimit.OutcomeInvalid) + 1

// A request is denied if a policy denied it, alone or together with others, if the
// key is banned, or if a policy that fails closed refused it because Redis is away.
var denials = []ratelimit.Outcome{
	ratelimit.OutcomeDenied, ratelimit.OutcomeDegradedDenied, ratelimit.OutcomeFailedClosed, ratelimit.OutcomeBanned,
}

// allOutcomes and denialOutcomes are kinds of a policy's Minute.
var allOutcomes, denialOutcomes = func() (all, denied []int) {
	for outcome := range outcomes {
		all = append(all, outcome)
	}
	for _, outcome := range denials {
		denied = append(denied, int(outcome))
	}
	return all, denied
}()

// Denied returns the number of requests that the policy denied.
func (p policyView) Denied() (n uint64) {
	for _, outcome := range denials {
		n += p.Outcomes[outcome.String()]
	}
	return n
}

// An outcomeView is the number of requests with an outcome.
type outcomeView struct {
	Name, Class string
	Count       uint64
}

// Unusual returns the outcomes except allowed and denied.
func (p policyView) Unusual() (unusual []outcomeView) {
	for outcome := range ratelimit.Outcome(outcomes) {
		name, class := outcome.String(), "warn"
		if p.Outcomes[name] == 0 || name == "allowed" || name == "denied" {
			continue
		}
		switch {
		case slices.Contains(denials, outcome):
			class = "bad"
		case outcome == ratelimit.OutcomeBorrowed, outcome == ratelimit.OutcomeSpared:
			class = ""
		}
		unusual = append(unusual, outcomeView{name, class, p.Outcomes[name]})
	}
	return unusual
}
