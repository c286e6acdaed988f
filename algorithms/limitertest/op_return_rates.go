// Returns of a token bucket whose rate changes: a Return credits no more than its take still holds: the difference
// between two exact levels, one with the take and one without it.

package limitertest

import (
	"math/big"
	"time"

	"github.com/penstock-go/penstock/algorithms"
)

var rateReturnRules = []rule{
	{
		// The return of x moves the state off its lattice. Under the fast limit four of a drain, and nine are taken.
		"mixed-before-two-rates",
		"a take that has drained at a faster rate is not credited at the slower one, even after returns in any order",
		func(w *world) {
			slow, fast := algorithms.TokenBucket(10, time.Hour), algorithms.TokenBucket(10, time.Second)
			h := &history{world: w}
			x, a := h.take(slow, 1), h.take(slow, 5)
			w.sleep(time.Second)
			h.giveBack(slow, x, 1)
			w.sleep(400 * time.Millisecond)
			h.take(fast, 9)
			h.giveBack(slow, a, 5)
		},
	},
	{
		// The rates divide each other: an instant at which a unit drains at the fast rate is one at the slow rate, too.
		"mixed-before-two-rates-in-step",
		"a take that has drained at a faster rate is not credited at the slower one, whatever the two rates are",
		func(w *world) {
			slow, fast := algorithms.TokenBucket(1, time.Second).WithBurst(10), algorithms.TokenBucket(10, time.Second)
			h := &history{world: w}
			x, a := h.take(slow, 1), h.take(slow, 9)
			w.sleep(500 * time.Millisecond)
			h.giveBack(slow, x, 1)
			w.sleep(800 * time.Millisecond)
			h.take(fast, 3)
			w.sleep(200 * time.Millisecond)
			h.take(fast, 8)
			h.giveBack(slow, a, 9)
		},
	},
	{
		// At two seconds a has drained. Then the return of b mixes the state.
		"mixed-after-two-rates",
		"returns in any order bring no take back that has drained at a faster rate before",
		func(w *world) {
			slow, fast := algorithms.TokenBucket(10, time.Hour), algorithms.TokenBucket(10, time.Second)
			h := &history{world: w}
			a := h.take(slow, 5)
			w.sleep(2 * time.Second)
			h.take(fast, 1)
			b := h.take(slow, 3)
			h.take(slow, 5)
			w.sleep(time.Millisecond)
			h.giveBack(slow, b, 3)
			h.giveBack(slow, a, 5)
		},
	},
	{
		// Half an hour after the return of x, one unit is taken. None of the others has drained until then.
		"mixed-and-raised",
		"a raised rate counts from the last take on, also after returns in any order",
		func(w *world) {
			slow, fast := algorithms.TokenBucket(1, time.Hour).WithBurst(10), algorithms.TokenBucket(10, time.Second)
			h := &history{world: w}
			x := h.take(slow, 1)
			h.take(slow, 8)
			w.sleep(time.Second)
			h.giveBack(slow, x, 1)
			w.sleep(30 * time.Minute)
			h.take(slow, 1)
			h.take(fast, 9)
		},
	},
	{
		// The same without a return before it: after a second, ten units have drained at the fast rate, not one. The slow
		// rate is known to have been left only if the take announced its Return. After the Reset, the key has an era.
		"rates-in-step",
		"a take is not credited what has drained at a faster rate, its own or another",
		func(w *world) {
			slow, fast := algorithms.TokenBucket(1, time.Second).WithBurst(10), algorithms.TokenBucket(10, time.Second)
			for _, own := range []algorithms.Limit{slow, fast} {
				h := &history{world: w.fresh()}
				h.world.take(own, 1)
				h.one(as(algorithms.Reset, h.on("", own, 0)))
				h.s.returns = own == slow
				a := h.take(own, 9)
				h.sleep(500 * time.Millisecond)
				h.take(fast, 3)
				h.sleep(500 * time.Millisecond)
				h.take(fast, 8)
				h.giveBack(slow, a, 9)
			}
		},
	},
	{
		// After the Grant the key is full, and would note nothing.
		"granted-and-two-rates",
		"a take whose units an operator has granted is not credited what has drained at a faster rate",
		func(w *world) {
			slow, fast := algorithms.TokenBucket(1, time.Second).WithBurst(10), algorithms.TokenBucket(10, time.Second)
			w.s.returns = true
			a := w.allow(w.on("", slow, 9))[0]
			w.s.returns = false
			w.one(as(algorithms.Grant, w.on("", slow, 9)))
			w.take(fast, 1)
			w.sleep(time.Second)
			w.take(fast, 10)
			w.one(back(a, 9))
			w.remaining(w.on("", slow, 0), 0)
		},
	},
	{
		// A take of a mixed state is still returned as exactly as the takes before it.
		"mixed-between",
		"returns in any order void no take of the same rate",
		func(w *world) {
			l := algorithms.TokenBucket(10, time.Hour)
			h := &history{world: w}
			x, a := h.take(l, 1), h.take(l, 2)
			w.sleep(time.Second)
			h.giveBack(l, x, 1)
			b, c := h.take(l, 2), h.take(l, 2)
			w.sleep(time.Second)
			for _, taken := range []algorithms.Check{b, a, c} {
				before := w.peek(w.on("", l, 0)).Remaining
				h.giveBack(l, taken, 2)
				// A unit may have begun to drain since the take.
				if got := w.peek(w.on("", l, 0)).Remaining - before; got < 1 {
					w.errorf("got %d units back of 2, want at least 1", got)
				}
			}
		},
	},
}

// changeRates takes and returns at random, under one limit, then another, and the first again. Units drain at the same
// instants at some of the rates, and half of the traces come at such instants. A return mixes the state, so half of the
// traces return nothing before the third limit.
func (w *world) changeRates(r source) {
	w.Helper()
	rates := []algorithms.Limit{
		algorithms.TokenBucket(1, time.Hour), algorithms.TokenBucket(1, 999_983*µs),
		algorithms.TokenBucket(7, 1_299_709*µs), algorithms.TokenBucket(30, 1_999_993*µs),
		algorithms.TokenBucket(1, time.Second), algorithms.TokenBucket(2, time.Second), algorithms.TokenBucket(4, time.Second),
	}
	first, second := pick(r, rates...).WithBurst(12), pick(r, rates...).WithBurst(12)
	from, step := pick(r, 0, 8), pick(r, µs, 250*time.Millisecond)
	w.s.returns = true
	h := &history{world: w}
	var taken []algorithms.Check
	for i := range 24 {
		l := first
		if i/4 == 1 {
			l = second
		}
		w.sleep(time.Duration(r.Int64N(pick[int64](r, 1, 20_000, 200_000, 2_000_000))) * µs / step * step)
		if len(taken) > 0 && i >= from && r.IntN(2) == 0 {
			c := &taken[r.IntN(len(taken))]
			if units := c.Decision.Receipt.Units(); units > 0 {
				*c = h.giveBack(l, *c, 1+r.Int64N(units))
			}
		} else if c := h.take(l, 1+r.Int64N(6)); c.Decision.Allowed {
			taken = append(taken, c)
		}
	}
}

// A history is the writes to a key, and the units that still count.
type history struct {
	*world
	writes []write
}

// A write is a take or a Return under a limit.
type write struct {
	at      int64
	limit   algorithms.Limit
	take    bool
	units   int64 // of a take: the units that were not returned
	receipt algorithms.Receipt
}

func (h *history) take(l algorithms.Limit, units int64) algorithms.Check {
	h.Helper()
	c := h.allow(h.on("", l, units))[0]
	if c.Decision.Allowed {
		h.writes = append(h.writes, write{h.clock.instant(), l, true, units, c.Decision.Receipt})
	}
	h.sound(l)
	return c
}

// giveBack returns units of a take under a limit.
func (h *history) giveBack(l algorithms.Limit, taken algorithms.Check, units int64) algorithms.Check {
	h.Helper()
	receipt := taken.Decision.Receipt
	taken.Limit = l
	taken = h.allow(back(taken, units))[0]
	for i := range h.writes {
		if w := &h.writes[i]; w.take && w.receipt == receipt {
			w.units, w.receipt = w.units-units, taken.Decision.Receipt
			break // takes of one instant may have equal receipts
		}
	}
	h.writes = append(h.writes, write{at: h.clock.instant(), limit: l})
	h.sound(l)
	return taken
}

// sound fails unless at least as many units are in use as an exact bucket counts. That bucket drains between two takes
// at the fastest rate among the later take and the returns between both. A raise of the rate may add less than one unit.
func (h *history) sound(l algorithms.Limit) {
	h.Helper()
	b, fastest := level{level: new(big.Rat)}, new(big.Rat)
	for _, w := range append(h.writes, write{h.clock.instant(), l, true, 0, algorithms.Receipt{}}) {
		if rate := big.NewRat(w.limit.Requests(), w.limit.Window().Microseconds()); rate.Cmp(fastest) > 0 {
			fastest = rate
		}
		if w.take {
			b.rate = fastest
			b.charge(w.at, w.units)
			fastest = new(big.Rat)
		}
	}
	used := h.peek(h.on("", l, 0)).Remaining - l.Burst()
	if over := b.level.Add(b.level, new(big.Rat).SetInt64(used)); over.Cmp(big.NewRat(1, 1)) >= 0 {
		excess, _ := over.Float64()
		h.errorf("%v at %d: more is free than if the returned units had never been taken, by %.3f units",
			l, h.clock.instant()-epoch, excess)
	}
}
