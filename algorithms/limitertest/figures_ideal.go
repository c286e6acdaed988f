// Answers from the definition of each algorithm, in rational numbers. The definition (a model) says how many units
// are in use at an instant. It knows no formula for a figure: every figure is the first instant, or the largest
// cost, that a search finds.

package limitertest

import (
	"math"
	"math/big"
	"testing"
	"time"

	"github.com/penstock-go/penstock/algorithms"
)

// Ideal plays random traces on a subject, and wants the answers of the definitions. A trace has one limit and a clock
// that does not step back.
func Ideal(t *testing.T, s Subject, traces int) {
	for _, a := range every() {
		t.Run(a.name(), func(t *testing.T) {
			t.Parallel()
			r := newSource(t)
			w := s.world(t, "verdicts and figures are those of the definition, in rational numbers")
			for range envTraces(t, traces) {
				if w.fresh().idealTrace(r, r.limit(a)); t.Failed() {
					return
				}
			}
		})
	}
}

func (w *world) idealTrace(r source, l algorithms.Limit) {
	w.Helper()
	ideal := ideal{limit: l, model: algorithmOf(l).model(l)}
	var retry time.Duration
	var story []string
	for range 25 {
		pause := max(0, r.pause(l))
		if retry > 0 && retry != algorithms.Never && r.IntN(2) == 0 {
			pause = retry - pick(r, 0, µs)
		}
		w.move(pause)
		c := w.on("", l, r.cost(l))
		if r.IntN(12) == 0 {
			c.Op = algorithms.Force
		}
		got := w.one(c)
		want := ideal.ask(c, w.clock.instant())
		want.Source, want.Receipt = got.Source, got.Receipt
		story = append(story, number(w.clock.instant()-epoch)+": "+c.Op.String()+" "+number(c.Cost))
		if show(got) != show(want) {
			w.errorf("%v after %q:\n\tgot  %s\n\twant %s", l, story, show(got), show(want))
			return
		}
		retry = got.RetryAfter
	}
}

// An ideal answers from a model.
type ideal struct {
	limit algorithms.Limit
	model model
}

func (m *ideal) ask(c algorithms.Check, now int64) algorithms.Decision {
	d := algorithms.Decision{Allowed: c.Op == algorithms.Force || m.fits(now, c.Cost)}
	switch {
	case !d.Allowed:
		d.RetryAfter = m.first(now, func(then int64) bool { return m.fits(then, c.Cost) })
	case c.Op == algorithms.Force:
		m.model.charge(now, min(c.Cost, m.model.room(now)))
	default:
		if algorithmOf(m.limit).delays && c.Cost > 0 {
			d.Delay = m.first(now, func(then int64) bool { return m.model.used(then).Sign() == 0 })
		}
		m.model.charge(now, c.Cost)
	}
	d.Remaining = m.remaining(now)
	d.ResetAfter = m.first(now, func(then int64) bool { return m.fits(then, m.limit.Burst()) })
	d.UnitAfter = m.first(now, func(then int64) bool { return m.fits(then, 1) })
	return d
}

// fits is the rule that all algorithms share: the units in use and the cost are no more than the burst.
func (m *ideal) fits(now, cost int64) bool {
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
