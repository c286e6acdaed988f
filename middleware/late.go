package middleware

import (
	"errors"
	"maps"
	"math/bits"
	"slices"
	"strings"
	"time"

	"github.com/penstock-go/penstock/algorithms"
)

// The algorithms that differ from the others in what can be settled late.
var (
	leakyBucket      = algorithms.LeakyBucket(1, time.Second).Algorithm()
	slidingWindowLog = algorithms.SlidingWindowLog(1, time.Second).Algorithm()
)

// validateSettling returns the mistakes of what a policy settles late.
func validateSettling(p Policy) error {
	var errs []error
	if p.Late && p.Cost == nil {
		errs = append(errs, errors.New("a policy with Late needs Cost, which says what to reserve"))
	}
	if p.Late && p.ChargeIf != nil {
		errs = append(errs, errors.New("the fields Late and ChargeIf exclude each other: what Settle charged is not given back"))
	}
	if p.Shadow && p.ChargeDenied {
		errs = append(errs, errors.New("a shadow policy denies nothing, and so has no denials to charge"))
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
func (p *policy) exact() bool { return p.ChargeIf != nil || p.ChargeDenied }

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

// chargeDenials charges denials to the policies that want it, and lengthens
// their waits by what that costs.
func (m *Middleware) chargeDenials(d *decision) {
	n := 0
	for i := range d.checks {
		c := &d.checks[i]
		if c.Op == algorithms.TrialInstead || d.asked[i].ban {
			continue
		}
		n++
		if !d.asked[i].policy.ChargeDenied || c.Op != algorithms.Take || c.Decision.Allowed || c.Cost == 0 ||
			c.Decision.RetryAfter == algorithms.Never || d.bannedBy(i) || !m.whole(&c.Decision) || !m.chargeDenial(c) {
			continue
		}
		c.Decision.RetryAfter = waitCharged(c)
		d.verdict.Policies[n-1].Decision.RetryAfter = c.Decision.RetryAfter
		d.verdict.RetryAfter = max(d.verdict.RetryAfter, c.Decision.RetryAfter)
	}
}

// whole reports whether the whole limit decided. Of a share of it, and of what
// nobody has counted, no wait after a charge could be told.
func (m *Middleware) whole(d *algorithms.Decision) bool {
	return d.Source == algorithms.Shared || m.alone && d.Source == algorithms.Local
}

func (m *Middleware) chargeDenial(c *algorithms.Check) bool {
	charge := *c
	charge.Key = strings.Clone(c.Key) // its bytes are the decision's
	charge.Op = algorithms.Force
	return m.settle(c.Policy, charge)
}

// waitCharged returns how long a denied check has to wait once its denial is
// charged, at most.
func waitCharged(c *algorithms.Check) time.Duration {
	wait, l := c.Decision.RetryAfter, c.Limit
	switch {
	case l.Algorithm().Aligned():
		return waitForTurns(&c.Decision, l, c.Cost)
	case l.Algorithm().Continuous():
		return wait + drain(l, c.Cost) // one cost too long if the debt is full
	case l.Algorithm() == slidingWindowLog:
		return l.Window() + settleTimeout // all has rolled away, and what is charged a moment late
	default:
		return 2*l.Window() + settleTimeout
	}
}

// setBack is more than any day is longer than 24 hours, or any month than 31 days.
const setBack = 3 * time.Hour

// waitForTurns is waitCharged for windows, of which each turn pays off one limit,
// of two at the most. How long the next one is, only a decision in debt tells.
func waitForTurns(d *algorithms.Decision, l algorithms.Limit, cost int64) time.Duration {
	used := l.Requests() - d.Remaining // without debt
	switch {
	case d.ResetAfter > d.RetryAfter: // in debt, and the second turn is the last
		return d.ResetAfter
	case d.Remaining == 0 && d.UnitAfter < d.RetryAfter: // it is that already
		return d.RetryAfter
	case used+2*cost <= 2*l.Requests():
		return d.RetryAfter
	case l.Algorithm().Calendar():
		return d.RetryAfter + l.Window() + setBack
	default:
		return d.RetryAfter + l.Window()
	}
}

// drain returns how long units of a bucket take to drain.
func drain(l algorithms.Limit, units int64) time.Duration {
	const longest = algorithms.Never / 4 // a century, and what is added to it fits
	hi, lo := bits.Mul64(uint64(units), uint64(l.Window()))
	requests := uint64(l.Requests())
	if hi >= requests {
		return longest
	}
	ns, rest := bits.Div64(hi, lo, requests)
	if rest > 0 {
		ns++
	}
	µs := (ns + 999) / 1000
	return time.Duration(min(µs, uint64(longest/time.Microsecond))) * time.Microsecond
}
