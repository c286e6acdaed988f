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

	tables []ratelimit.Overrides // of the Middlewares that have the policy
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

func (p *Page) policy(m *ratelimit.Middleware, policy *ratelimit.Policy, now time.Duration) policyView {
	f, found := m.InForce(policy.Name, ratelimit.Everyone, "", algorithms.Limit{})
	v := policyView{Outcomes: make(map[string]uint64), tables: []ratelimit.Overrides{m.Overrides()}, definition: definition{
		Name: policy.Name, Limit: policy.Limit, Tiers: policy.Tiers, Candidate: policy.Candidate, Fail: policy.Fail.String(), Modes: properties(policy),
		Everyone: f.Override, Ignored: f.Ignored != nil, mode: f.Mode,
	}}
	if tenants, weights := m.Inside().Tenants(policy.Name); tenants > 0 && found {
		share := shares.Of(f.Limit, 1, weights, 1)
		v.Tenants, v.Share = tenants, &share
	}
	if minute := (*p.outcomes.Load())[policyOf{m, policy.Name}]; minute != nil {
		counts, _ := minute.Last(now)
		v.Ticks = ticks{minute.Ticks(now, allOutcomes...), minute.Ticks(now, denials...)}
		for outcome, n := range counts {
			if n > 0 {
				v.Outcomes[ratelimit.Outcome(outcome).String()] = uint64(n)
				v.Requests += uint64(n)
			}
		}
	}
	return v
}

// everyPolicy is the policy of an override for all policies, in package overrides.
const everyPolicy = "*"

// countOverrides counts the overrides that hold for keys of the policy, or for keys of all policies. The policy's
// Middlewares mostly have one table; of several, the one with most overrides counts. It looks at each override, so
// requests must not wait for it.
func (p *policyView) countOverrides() {
	for _, table := range p.tables {
		counted, ok := table.(interface {
			Count(policy string) map[ratelimit.Mode]int
		})
		if !ok {
			continue
		}
		n := 0
		for _, place := range []string{p.Name, everyPolicy} {
			for _, of := range counted.Count(place) {
				n += of
			}
		}
		p.Overrides = max(p.Overrides, n)
	}
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
	known.tables = append(known.tables, p.tables...)
}

// outcomes is how many outcomes there are.
const outcomes = int(ratelimit.OutcomeInvalid) + 1

// A request is denied if a policy denied it, alone or together with others, if the
// key is banned, or if a policy that fails closed refused it because Redis is away.
// As all outcomes, denials are kinds of a policy's Minute.
var denials = []int{
	int(ratelimit.OutcomeDenied), int(ratelimit.OutcomeDegradedDenied), int(ratelimit.OutcomeFailedClosed), int(ratelimit.OutcomeBanned),
}

var allOutcomes = func() (all []int) {
	for outcome := range outcomes {
		all = append(all, outcome)
	}
	return all
}()

// Denied returns the number of requests that the policy denied.
func (p policyView) Denied() (n uint64) {
	for _, outcome := range denials {
		n += p.Outcomes[ratelimit.Outcome(outcome).String()]
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
		case slices.Contains(denials, int(outcome)):
			class = "bad"
		case outcome == ratelimit.OutcomeBorrowed, outcome == ratelimit.OutcomeSpared:
			class = ""
		}
		unusual = append(unusual, outcomeView{name, class, p.Outcomes[name]})
	}
	return unusual
}
