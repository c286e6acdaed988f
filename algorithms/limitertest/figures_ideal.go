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

// runDefinitions plays random histories of one key, under one limit and a clock that does not step back. With the real
// clock only what needs no time is compared.
func runDefinitions(t *testing.T, s Subject) {
	for _, a := range every() {
		t.Run(a.name(), func(t *testing.T) {
			t.Parallel()
			r := newSource(t)
			w := s.world(t, "verdicts, figures and receipts are those of the definition, in rational numbers")
			if s.RealClock {
				w.history(r, a.of(10, 365*24*time.Hour))
				return
			}
			for range max(12, s.traces(t)/8) {
				w := w.fresh()
				w.clock.set(pick(r, epoch, 1+r.Int64N(1<<52)))
				if w.history(r, pick(r, r.limit(a), a.of(20, time.Minute))); t.Failed() {
					return
				}
			}
		})
	}
}

// A history is a random sequence of calls on one key, played on a limiter and on the definition.
type history struct {
	*world
	source
	ideal ideal
	taken []taken
	story []string
}

// A taken is a take that a later call may return or renew.
type taken struct {
	check  algorithms.Check
	charge int // its number among the charges of the model
}

func (w *world) history(r source, l algorithms.Limit) {
	w.Helper()
	h := &history{world: w, source: r, ideal: ideal{limit: l, model: algorithmOf(l).model(l)}}
	var retry time.Duration
	for range 30 {
		pause := max(0, r.pause(l))
		if retry > 0 && retry != algorithms.Never && r.IntN(2) == 0 {
			pause = retry - pick(r, 0, µs)
		}
		if at := w.clock.instant() + pause.Microseconds(); at < lastInstant && !w.s.RealClock {
			w.clock.set(at)
		}
		if retry = h.step(); h.broken.Load() {
			return
		}
	}
}

// step plays one call, and returns its RetryAfter.
func (h *history) step() time.Duration {
	h.Helper()
	now := h.clock.instant()
	c, of := h.question()
	h.story = append(h.story, number(now-epoch)+": "+c.Op.String()+" "+number(c.Cost))
	full := h.ideal.model.used(now).Sign() == 0
	want, got := h.ideal.ask(c, of.charge, now), h.one(c)
	want.Source = h.s.Source
	compared := got
	if h.s.RealClock {
		for _, d := range []*algorithms.Decision{&want, &compared} {
			d.RetryAfter, d.ResetAfter, d.UnitAfter, d.Delay = 0, 0, 0, 0
		}
	}
	if show(compared) != show(want) {
		h.errorf("%v after %q:\n\tgot  %s\n\twant %s", c.Limit, h.story, show(compared), show(want))
		return 0
	}
	switch {
	case c.Op == algorithms.Take && got.Receipt.Units() > 0:
		c.Decision = got
		h.taken = append(h.taken, taken{c, h.ideal.charges - 1})
	// An older receipt must free no unit of concurrent requests again.
	case c.Op == algorithms.Return && (algorithmOf(c.Limit).family != held || h.IntN(2) == 0):
		of.check.Decision = got
	}
	if c.Op == algorithms.Reset || c.Op == algorithms.Return && !full && want.Remaining == c.Limit.Burst() && !h.s.RealClock {
		h.empty(c)
	}
	return got.RetryAfter
}

// question returns a random check, and the take that it returns or renews.
func (h *history) question() (algorithms.Check, *taken) {
	l, of := h.ideal.limit, new(taken)
	c, a := h.on("", l, pick(h.source, h.cost(l), h.Int64N(8))), algorithmOf(l)
	if h.IntN(10) == 0 { // the bounds of arithmetic: 2^40 is the largest that a script sees, 2^53 the end of exact doubles
		c.Cost = pick[int64](h.source, 1<<30, 1<<32+1, 1<<40-1, 1<<40, 1<<40+1, 1<<53, 1<<62, 1<<63-1)
	}
	take := c
	switch h.IntN(16) {
	case 0:
		c.Op = algorithms.Force
	case 1, 2:
		op := pick(h.source, algorithms.Grant, algorithms.Reset, algorithms.Return, algorithms.Renew)
		// A Grant may free held units that have ended. Under the real clock the model does not know the order of entries.
		if !(op == algorithms.Grant && a.family == held || h.s.RealClock) {
			c.Op = op
		}
	case 3, 4, 5, 6, 7:
		if len(h.taken) == 0 {
			break
		}
		of = &h.taken[len(h.taken)-1-h.IntN(min(6, len(h.taken)))]
		c.Op, c.Decision.Receipt = pick(h.source, algorithms.Return, algorithms.Return, algorithms.Renew), of.check.Decision.Receipt
		c.Cost = pick(h.source, 0, 1, of.check.Cost, 1+h.Int64N(of.check.Cost), c.Cost)
		if c.Op == algorithms.Renew || a.delays { // a queue credits its newest place only
			c.Op, c.Cost = algorithms.Renew, 0
		}
	}
	if c.Op == algorithms.Force && h.IntN(8) == 0 || c.Op == algorithms.Grant && h.IntN(2) == 0 {
		c.Cost = math.MaxInt64 // a debt has a floor, and nothing is above full
	}
	if h.s.Claims != nil && !h.s.Claims([]algorithms.Check{c}) {
		return take, new(taken)
	}
	return c, of
}

// An ideal answers from a model.
type ideal struct {
	limit   algorithms.Limit
	model   model
	charges int
}

// ask answers a check, which returns or renews units of the charge of that number.
func (m *ideal) ask(c algorithms.Check, charge int, now int64) algorithms.Decision {
	d := algorithms.Decision{Allowed: c.Op != algorithms.Take || m.fits(now, c.Cost)}
	units := c.Decision.Receipt.Units()
	switch c.Op {
	case algorithms.Force:
		m.charge(now, min(c.Cost, m.model.room(now)))
	case algorithms.Grant:
		m.model.grant(now, c.Cost)
	case algorithms.Reset:
		m.model.grant(now, math.MaxInt64)
	case algorithms.Return:
		part := min(units, c.Cost)
		m.model.giveBack(now, charge, units, part)
		d.Receipt = receiptOf(units - part)
	case algorithms.Renew:
		d.Receipt = receiptOf(units)
		if renewer, ok := m.model.(renewer); ok {
			renewer.renew(now, charge, units)
		}
	default:
		m.take(c.Cost, now, &d)
	}
	d.Remaining = m.remaining(now)
	d.ResetAfter = m.first(now, func(then int64) bool { return m.fits(then, m.limit.Burst()) })
	d.UnitAfter = m.first(now, func(then int64) bool { return m.fits(then, 1) })
	return d
}

func (m *ideal) take(cost, now int64, d *algorithms.Decision) {
	if !d.Allowed {
		d.RetryAfter = m.first(now, func(then int64) bool { return m.fits(then, cost) })
		return
	}
	if algorithmOf(m.limit).delays && cost > 0 {
		d.Delay = m.first(now, func(then int64) bool { return m.model.used(then).Sign() == 0 })
	}
	m.charge(now, cost)
	d.Receipt = receiptOf(cost)
}

func (m *ideal) charge(now, units int64) {
	m.model.charge(now, units)
	m.charges++
}

// receiptOf returns a receipt of that many units, for comparisons.
func receiptOf(units int64) algorithms.Receipt {
	if units == 0 {
		return algorithms.Receipt{}
	}
	return algorithms.NewReceipt(units, 0, 0, 0)
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
