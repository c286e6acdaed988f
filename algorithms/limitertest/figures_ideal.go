// Answers from the definition of each algorithm, in rational numbers. The definition (a model) says how many units
// are in use at an instant. It knows no formula for a figure: every figure is the first instant, or the largest
// cost, that a search finds.

package limitertest

import (
	"context"
	"math"
	"math/big"
	"time"

	"github.com/penstock-go/penstock/algorithms"
)

// A definition is a limiter that answers from the definitions of its keys, at the instants of a world.
type definition struct {
	*world
	keys    map[[3]string]*ideal
	emptied bool // the last call was a settlement after which nothing of its key may be stored
}

// An ideal answers from the definition of one key.
type ideal struct {
	limit   algorithms.Limit
	model   model // nil: the limit of nobody
	charges int
}

// Allow implements [algorithms.Limiter].
func (d *definition) Allow(_ context.Context, checks []algorithms.Check) error {
	now, c := d.clock.instant(), call{checks: checks}
	for _, check := range checks {
		name := [3]string{check.Policy, check.Key, check.Limit.Algorithm().String()}
		key := d.keys[name]
		if key == nil {
			if key = (&ideal{limit: check.Limit}); check.Limit != algorithms.Nobody() {
				key.model = algorithmOf(check.Limit).model(check.Limit)
			}
			d.keys[name] = key
		}
		c.keys = append(c.keys, key)
	}
	key, op := c.keys[0], checks[0].Op
	used := key.model != nil && key.model.used(now).Sign() > 0
	c.answer(now)
	d.emptied = len(checks) == 1 && key.model != nil && key.model.used(now).Sign() == 0 &&
		(op == algorithms.Reset || op == algorithms.Return && used)
	for i := range checks {
		checks[i].Decision.Source = d.s.Source
	}
	return nil
}

// A call is asked in one call of a limiter. Its checks have places, and the ideals of their keys the same places.
type call struct {
	checks []algorithms.Check
	keys   []*ideal
}

// answer answers a call in place, and charges its keys.
func (c *call) answer(now int64) {
	denied := 0
	for i := range c.checks {
		check, key := &c.checks[i], c.keys[i]
		switch {
		case check.Op >= algorithms.Return:
			check.Decision = key.settle(*check, now)
		case check.Op <= algorithms.TakeElse:
			check.Decision = key.judge(now, func(then int64) bool { return c.passes(i, then) })
			if !check.Decision.Allowed && !leads(c.checks, i) {
				denied++
			}
		}
	}
	for i := range c.checks {
		if c.checks[i].Op <= algorithms.TakeElse && denied == 0 && c.chosen(i) {
			c.keys[i].take(&c.checks[i], now)
		}
	}
	for i := range c.checks {
		if check := &c.checks[i]; check.Op == algorithms.Trial || check.Op == algorithms.TrialInstead {
			c.try(i, denied, now)
		}
	}
}

// passes reports whether a take would be allowed at an instant if nothing were charged until then. The second take of
// a pair speaks for both.
func (c *call) passes(i int, then int64) bool {
	check, key, need := &c.checks[i], c.keys[i], c.need(i)
	switch {
	case key.fits(then, need):
		return true
	case check.Op == algorithms.TakeElse:
		return c.passes(i-1, then)
	case check.Op == algorithms.TakeReserved && key.model != nil && need <= check.Limit.Burst():
		return c.passes(i-1, then) && key.model.room(then) >= need
	}
	return false
}

// need returns the cost of a take and of those before it on its key.
func (c *call) need(i int) (units int64) {
	for j, before := range c.checks[:i+1] {
		if c.keys[j] == c.keys[i] {
			units = min(units, math.MaxInt64-before.Cost) + before.Cost
		}
	}
	return units
}

// chosen reports whether a take is charged in a call that is not denied.
func (c *call) chosen(i int) bool {
	if c.checks[i].Op == algorithms.TakeElse {
		return !c.checks[i-1].Decision.Allowed
	}
	return c.checks[i].Decision.Allowed
}

// try answers a trial in a call with so many denied takes. A candidate leaves out the take before it.
func (c *call) try(i, denied int, now int64) {
	check, key := &c.checks[i], c.keys[i]
	if check.Op == algorithms.TrialInstead {
		before := i - 1
		for c.checks[before].Op > algorithms.TakeElse {
			before--
		}
		if !c.checks[before].Decision.Allowed {
			denied--
		}
	}
	check.Decision = key.judge(now, func(then int64) bool { return key.fits(then, check.Cost) })
	if check.Decision.Allowed && denied == 0 {
		key.take(check, now)
	}
}

// judge returns the answer to a take or a trial that is not charged, and passes at some instants.
func (m *ideal) judge(now int64, passes func(then int64) bool) algorithms.Decision {
	d := m.figures(now)
	d.Allowed, d.RetryAfter = passes(now), m.first(now, passes)
	return d
}

// take charges a take or a trial that was allowed.
func (m *ideal) take(c *algorithms.Check, now int64) {
	var delay time.Duration
	charge := m.charges
	if algorithmOf(m.limit).delays && c.Cost > 0 {
		delay = m.first(now, func(then int64) bool { return m.model.used(then).Sign() == 0 })
	}
	m.charge(now, c.Cost)
	c.Decision = m.figures(now)
	c.Decision.Allowed, c.Decision.Delay, c.Decision.Receipt = true, delay, receiptOf(c.Cost, charge)
}

// settle answers a settlement.
func (m *ideal) settle(c algorithms.Check, now int64) algorithms.Decision {
	if m.model == nil {
		return algorithms.Decision{Allowed: true}
	}
	units, number, _, _ := c.Decision.Receipt.State()
	left, charge := int64(0), int(number)
	switch c.Op {
	case algorithms.Force:
		m.charge(now, min(c.Cost, m.model.room(now)))
	case algorithms.Grant:
		m.model.grant(now, c.Cost)
	case algorithms.Reset:
		m.model.grant(now, math.MaxInt64)
	case algorithms.Return:
		left = units - min(units, c.Cost)
		m.model.giveBack(now, charge, units, units-left)
	case algorithms.Renew:
		left = units
		if renewer, ok := m.model.(renewer); ok {
			renewer.renew(now, charge, units)
		}
	}
	d := m.figures(now)
	d.Allowed, d.Receipt = true, receiptOf(left, charge)
	return d
}

// figures returns the figures of the state.
func (m *ideal) figures(now int64) algorithms.Decision {
	if m.model == nil {
		return algorithms.Decision{UnitAfter: algorithms.Never}
	}
	return algorithms.Decision{
		Remaining:  m.remaining(now),
		ResetAfter: m.first(now, func(then int64) bool { return m.fits(then, m.limit.Burst()) }),
		UnitAfter:  m.first(now, func(then int64) bool { return m.fits(then, 1) }),
	}
}

func (m *ideal) charge(now, units int64) {
	m.model.charge(now, units)
	m.charges++
}

// receiptOf returns a receipt of units that are left of a charge, with its number in the place of an instant.
func receiptOf(units int64, charge int) algorithms.Receipt {
	if units == 0 {
		return algorithms.Receipt{}
	}
	return algorithms.NewReceipt(units, int64(charge), 0, 0)
}

// fits is the rule that all algorithms share: the units in use and the cost are no more than the burst.
func (m *ideal) fits(now, cost int64) bool {
	if m.model == nil {
		return false
	}
	sum := m.model.used(now)
	return sum.Add(sum, new(big.Rat).SetInt64(cost)).Cmp(new(big.Rat).SetInt64(m.limit.Burst())) <= 0
}

// remaining returns the highest cost that fits.
func (m *ideal) remaining(now int64) int64 {
	var low, high int64 = 0, m.limit.Burst() + 1 // low fits, or is 0; high does not
	for high-low > 1 {
		if middle := low + (high-low)/2; m.fits(now, middle) {
			low = middle
		} else {
			high = middle
		}
	}
	return low
}

// first returns how long until the first µs at which ok holds. From then on it must hold for good.
func (m *ideal) first(now int64, ok func(int64) bool) time.Duration {
	if ok(now) {
		return 0
	}
	var low, high int64 = 0, math.MaxInt64 / 1000 // the longest Duration
	if !ok(now + high) {
		return algorithms.Never
	}
	for high-low > 1 {
		if middle := low + (high-low)/2; ok(now + middle) {
			high = middle
		} else {
			low = middle
		}
	}
	return time.Duration(high) * µs
}
