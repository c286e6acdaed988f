// The limit in force for a request: the first of the key's override, everyone's
// override, LimitOf, the identity's tier, and Policy.Limit.

package ratelimit

import (
	"errors"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/headers"
)

// A grade is a limit of a policy, and its description for headers.
type grade struct {
	limit algorithms.Limit
	quota *headers.Quota // nil: headers keep silent
}

func newGrade(p *Policy, l algorithms.Limit) (*grade, error) {
	g := &grade{limit: l}
	if p.hidden() || p.Shadow {
		return g, nil
	}
	var err error
	g.quota, err = headers.NewQuota(quotaConfig(p.Name, l))
	return g, err
}

// set gives a part a limit of the configuration.
func (a *part) set(g *grade) { a.grade, a.limit = g, g.limit }

// dynamic reports whether an override or LimitOf chose the limit of the part.
func (a *part) dynamic() bool { return a.grade == nil && a.limit.Algorithm() != algorithms.Algorithm{} }

// choose sets the tier of a part, and its limit unless an override has set it.
func (q *request) choose(a *part, tier string) {
	p := a.policy
	g, known := p.tiers[tier]
	if known {
		a.tier = tier
	} else {
		g = p.base
	}
	if a.dynamic() {
		return
	}
	if p.LimitOf != nil {
		if l, ok := p.LimitOf(q.http.Request); ok && q.replace(a, l, "LimitOf") {
			return
		}
	}
	a.set(g)
	a.unknownTier = !known && tier != "" && len(p.tiers) > 0
}

// replace gives a part the limit of an override or of LimitOf. It reports false
// if the limit is invalid, or excludes another limit of the request.
func (q *request) replace(a *part, l algorithms.Limit, from string) bool {
	all := q.mix
	all.add(l)
	err := all.validate()
	if err == nil {
		err = a.policy.replaceable(l)
	}
	if err != nil {
		q.m.troubles.log("invalid limit of "+from, err, "policy", a.policy.Name)
		return false
	}
	q.mix, a.limit = all, l
	return true
}

// leakyBucket is the algorithm whose units cannot be settled later.
var leakyBucket = algorithms.LeakyBucket(1, time.Second).Algorithm()

// A mix says which limits of one decision exclude each other.
type mix struct{ leaky, concurrent bool }

func (m *mix) add(l algorithms.Limit) {
	m.leaky = m.leaky || l.Algorithm() == leakyBucket
	m.concurrent = m.concurrent || l.Algorithm().Concurrent()
}

func (m mix) validate() error {
	if m.leaky && m.concurrent {
		return errors.New("a leaky-bucket and a concurrent limit cannot be in one Middleware: a held request would occupy " +
			"the concurrent limit. Make two, the leaky bucket outside")
	}
	return nil
}

// quotaConfig describes a limit for headers.
func quotaConfig(name string, l algorithms.Limit) headers.QuotaConfig {
	if l.Algorithm().Concurrent() {
		return headers.QuotaConfig{Name: name, Limit: l.Requests(), Unit: "concurrent-requests"}
	}
	return headers.QuotaConfig{
		Name: name, Limit: l.Burst(), Requests: l.Requests(), Window: l.Window(),
		Continuous: l.Algorithm().Continuous(), Calendar: l.Algorithm().Calendar(),
	}
}

// grid returns a duration that divides all window ends of an aligned limit,
// counted from the epoch. Calendar periods end at whole minutes, because
// today's time zones differ from UTC by whole minutes.
func grid(l algorithms.Limit) time.Duration {
	if l.Algorithm().Calendar() {
		return time.Minute
	}
	return l.Window()
}
