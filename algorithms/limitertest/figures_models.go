// Definitions that several algorithms share, in integers and rational numbers. They remember every admission and
// never simplify, so they share no formula with the limiters that they judge. Definitions of a single algorithm are
// in its file.

package limitertest

import (
	"math"
	"math/big"

	"github.com/penstock-go/penstock/algorithms"
)

// A model is the definition of an algorithm under one limit. The instants that it gets (µs) never step back.
type model interface {
	// used returns the units in use at an instant at or after the last charge.
	used(now int64) *big.Rat

	// charge adds units.
	charge(now, units int64)

	// room returns how many units fit until there is one burst of debt.
	room(now int64) int64

	// grant credits units, at most those in use.
	grant(now, units int64)

	// giveBack credits part of the units that are left of a charge, which has this number among all charges.
	giveBack(now int64, charge int, left, part int64)
}

// A renewer is a model whose units are held.
type renewer interface {
	renew(now int64, charge int, left int64)
}

// maxDebt returns the most units that a key may have in use: two bursts, at most 2^30. Windows hold up to 2^40.
func maxDebt(burst int64) int64 { return min(2*burst, 1<<30) }

// A level falls evenly and stops at 0. It is the model of buckets:
//
//	used(now) = max(0, level - (now - at)·requests/window)
type level struct {
	rate  *big.Rat // units per µs
	burst int64
	level *big.Rat
	at    int64
}

func newLevel(l algorithms.Limit) model {
	return &level{big.NewRat(l.Requests(), l.Window().Microseconds()), l.Burst(), new(big.Rat), 0}
}

func (b *level) used(now int64) *big.Rat {
	drained := new(big.Rat).SetInt64(now - b.at)
	left := new(big.Rat).Sub(b.level, drained.Mul(drained, b.rate))
	if left.Sign() < 0 {
		left.SetInt64(0)
	}
	return left
}

func (b *level) charge(now, units int64) {
	b.level, b.at = b.used(now), now
	b.level.Add(b.level, new(big.Rat).SetInt64(units))
}

func (b *level) grant(now, units int64) { b.charge(now, -units) } // used stops at 0

func (b *level) giveBack(now int64, _ int, _, part int64) { b.grant(now, part) }

// room counts whole units in use. Part of a unit counts as one.
func (b *level) room(now int64) int64 {
	used := b.used(now)
	whole := new(big.Int).Add(used.Num(), new(big.Int).Sub(used.Denom(), big.NewInt(1)))
	return max(0, maxDebt(b.burst)-whole.Div(whole, used.Denom()).Int64())
}

// An admission is units that were charged at an instant.
type admission struct{ at, units int64 }

// admissions are the history of a key. Models of everything except buckets embed them.
type admissions struct{ all []admission }

func (a *admissions) charge(now, units int64) { a.all = append(a.all, admission{now, units}) }

// grant credits the newest units, because they count for the longest.
func (a *admissions) grant(_, units int64) { a.forget(units, math.MinInt64, math.MaxInt64) }

// forget takes units off the admissions from an instant on and before another, the newest first.
func (a *admissions) forget(units, from, before int64) {
	for i := len(a.all) - 1; i >= 0; i-- {
		if charged := &a.all[i]; charged.at >= from && charged.at < before {
			part := min(units, charged.units)
			charged.units -= part
			units -= part
		}
	}
}

// within returns the units that were charged from an instant on and before another.
func (a *admissions) within(from, before int64) (sum int64) {
	for _, charged := range a.all {
		if charged.at >= from && charged.at < before {
			sum += charged.units
		}
	}
	return sum
}

// A turning model counts period by period. Debt goes into the next periods: each pays one limit off.
type turning struct {
	admissions
	limit  int64
	period func(at int64) int64 // numbers periods, without gaps
}

func (p *turning) used(now int64) *big.Rat { return new(big.Rat).SetInt64(p.owed(now)) }

// owed returns the units that the period of now has used, with the debt of earlier periods.
func (p *turning) owed(now int64) (sum int64) {
	var period int64
	payUntil := func(next int64) {
		for ; period < next && sum > 0; period++ {
			sum = max(0, sum-p.limit)
		}
		period = next
	}
	for _, charged := range p.all {
		payUntil(p.period(charged.at))
		sum += charged.units
	}
	payUntil(p.period(now))
	return sum
}

func (p *turning) room(now int64) int64 { return max(0, min(2*p.limit, 1<<40)-p.owed(now)) }

// giveBack credits nothing after the period of the charge.
func (p *turning) giveBack(now int64, charge int, _, part int64) {
	if part > 0 && p.period(p.all[charge].at) == p.period(now) {
		p.grant(now, part)
	}
}

// An entries model counts each admission in full for one window after it.
type entries struct {
	admissions
	limit, window int64
}

func newEntries(l algorithms.Limit) model {
	return &entries{limit: l.Requests(), window: l.Window().Microseconds()}
}

func (e *entries) used(now int64) *big.Rat {
	return new(big.Rat).SetInt64(e.within(now-e.window+1, now+1))
}

func (e *entries) room(now int64) int64 { return max(0, maxDebt(e.limit)-e.used(now).Num().Int64()) }

func (e *entries) giveBack(_ int64, charge int, _, part int64) {
	if part > 0 {
		e.forget(part, e.all[charge].at, e.all[charge].at+1)
	}
}
