package middleware

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/penstock-go/penstock/algorithms"
)

// leakyBucket is the algorithm that cannot be settled late.
var leakyBucket = algorithms.LeakyBucket(1, time.Second).Algorithm()

// validateSettling returns the mistakes of what a policy settles late.
func validateSettling(p Policy) error {
	var errs []error
	if p.Late && p.Cost == nil {
		errs = append(errs, errors.New("a policy with Late needs Cost, which says what to reserve"))
	}
	if p.Late && p.ChargeIf != nil {
		errs = append(errs, errors.New("the fields Late and ChargeIf exclude each other: what Settle charged is not given back"))
	}
	said := make(map[string]bool)
	for _, l := range p.limits() {
		err := validateLate(p, l)
		if err != nil && !said[err.Error()] {
			said[err.Error()] = true
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// A mix says which limits one decision may have that do not go together.
type mix struct{ leaky, concurrent bool }

func mixOf(policies []Policy) (m mix) {
	for _, p := range policies {
		for _, l := range p.limits() {
			m.add(l)
		}
	}
	return m
}

func (m *mix) add(l algorithms.Limit) {
	m.leaky = m.leaky || l.Algorithm() == leakyBucket
	m.concurrent = m.concurrent || l.Algorithm().Concurrent()
}

func (m mix) validate() error {
	if m.leaky && m.concurrent {
		return errors.New("a leaky bucket holds requests that would hold a concurrent limit meanwhile: make one Middleware of each, the bucket outside")
	}
	return nil
}

// limits are all that a policy has.
func (p *Policy) limits() []algorithms.Limit {
	limits := append(slices.Collect(maps.Values(p.Tiers)), p.Limit)
	if p.Candidate != nil {
		limits = append(limits, *p.Candidate)
	}
	return limits
}

func validateLate(p Policy, l algorithms.Limit) error {
	switch {
	case l.Validate() != nil:
		return nil // that is said elsewhere
	case l.Algorithm().Concurrent():
		return validateConcurrent(p, l)
	case l.Algorithm() == leakyBucket && (p.Late || p.ChargeIf != nil):
		return errors.New("a leaky bucket cannot settle late: those behind a request have been promised their turns")
	default:
		return nil
	}
}

// settles reports whether requests of the policy may give back or be charged
// more later.
func (p *policy) settles() bool { return p.Late || p.ChargeIf != nil }

// exact reports whether the policy's state changes by more than what it admits,
// so that no memory of an earlier answer holds.
func (p *policy) exact() bool { return p.ChargeIf != nil }

// open returns a tab of what an admitted request has reserved, or nil if that is
// nothing.
func (d *decision) open(m *Middleware) *tab {
	if !d.verdict.Allowed {
		return nil
	}
	var t *tab
	for i := range d.asked {
		p, c := d.asked[i].policy, &d.checks[i]
		// A trial that was not charged counts nothing later either.
		if (!p.settles() && !c.Limit.Algorithm().Concurrent()) || d.asked[i].ban || (c.Op != algorithms.Take && c.Decision.Receipt.Units() == 0) {
			continue
		}
		if t == nil {
			t = &tab{m: m, began: time.Now()}
		}
		res := reservation{policy: p, tier: d.asked[i].grade.tier, check: *c, total: -1}
		res.check.Key = strings.Clone(c.Key) // its bytes are the decision's
		t.reservations = append(t.reservations, res)
	}
	return t
}
