// The limit in force for a request: the first of the key's override, everyone's
// override, LimitOf, the identity's tier, and Policy.Limit.

package ratelimit

import (
	"errors"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/headers"
)

// A limit is a limit of the configuration, and its description for headers.
type limit struct {
	algorithms.Limit
	concurrent bool
	quota      *headers.Quota // nil: headers keep silent
}

func newLimit(p *Policy, l algorithms.Limit) (*limit, error) {
	described := &limit{Limit: l, concurrent: l.Algorithm().Concurrent()}
	if p.hidden() || p.Shadow {
		return described, nil
	}
	var err error
	described.quota, err = headers.NewQuota(quotaConfig(p.Name, l))
	return described, err
}

// set gives a part a limit of the configuration.
func (a *part) set(l *limit) {
	a.limit = l.Limit // alone: an assignment of several values would copy it twice
	a.configured, a.concurrent = l, l.concurrent
}

// choose sets the tier of a part, and its limit unless an override has set it.
func (q *request) choose(a *part, tier string) {
	p := a.policy
	l, known := p.tiers[tier]
	if known {
		a.tier = tier
	} else {
		l = p.base
	}
	if a.dynamic {
		return
	}
	if p.LimitOf != nil {
		if own, ok := p.LimitOf(q.http.Request); ok && q.replace(a, own, "LimitOf") {
			a.limitOf = true
			return
		}
	}
	a.set(l)
	a.unknownTier = !known && tier != "" && len(p.tiers) > 0
}

// replace gives a part the limit of an override or of LimitOf. It reports false
// if the limit is invalid, or excludes another limit of the request.
func (q *request) replace(a *part, l algorithms.Limit, from string) bool {
	all := q.kinds
	all.add(l)
	err := all.validate()
	if err == nil {
		err = a.policy.replaceable(l)
	}
	if err != nil {
		q.m.log.Warn("invalid limit of "+from, a.policy.Name, err)
		return false
	}
	q.kinds, a.limit, a.dynamic, a.concurrent = all, l, true, l.Algorithm().Concurrent()
	return true
}

// leakyBucket is the algorithm whose units cannot be settled later.
var leakyBucket = algorithms.LeakyBucket(1, time.Second).Algorithm()

// limitKinds are the kinds of limits of one decision that exclude each other.
type limitKinds struct{ leaky, concurrent bool }

func (k *limitKinds) add(l algorithms.Limit) {
	k.leaky = k.leaky || l.Algorithm() == leakyBucket
	k.concurrent = k.concurrent || l.Algorithm().Concurrent()
}

func (k limitKinds) validate() error {
	if k.leaky && k.concurrent {
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
