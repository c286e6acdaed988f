// Returns of a token bucket whose rate changes: a Return credits no more than its take still holds. What a take holds
// is the difference between two exact levels, one with the take and one without it.

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
		// At two seconds a has drained. The state is mixed by the return of b, which a precedes.
		"mixed-after-two-rates",
		"returns in any order bring no take back that has drained at a faster rate before",
		func(w *world) {
			slow, fast := algorithms.TokenBucket(10, time.Hour), algorithms.TokenBucket(10, time.Second)
			h := &history{world: w}
			a := h.take(slow, 5)
			w.sleep(2 * time.Second)
			b := h.take(fast, 3)
			h.take(fast, 6)
			w.sleep(time.Millisecond)
			h.giveBack(slow, b, 3)
			h.giveBack(slow, a, 5)
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

// A history is what was written to a key, and how much of it still counts.
type history struct {
	*world
	writes []write
}

// A write is units under a limit, which were charged at an instant. A Return charges none.
type write struct {
	admission
	limit algorithms.Limit
	of    algorithms.Receipt
}

// take takes units, and remembers them if they were admitted.
func (h *history) take(l algorithms.Limit, units int64) algorithms.Check {
	h.Helper()
	c := h.allow(h.on("", l, units))[0]
	if c.Decision.Allowed {
		h.writes = append(h.writes, write{admission{h.clock.instant(), units}, l, c.Decision.Receipt})
	}
	h.sound(l)
	return c
}

// giveBack returns units of a take under a limit.
func (h *history) giveBack(l algorithms.Limit, taken algorithms.Check, units int64) algorithms.Check {
	h.Helper()
	taken.Limit = l
	before, receipt := h.peek(h.on("", l, 0)), taken.Decision.Receipt
	taken = h.allow(back(taken, units))[0]
	for i := range h.writes {
		if w := &h.writes[i]; w.of == receipt {
			w.units -= units
			w.of = taken.Decision.Receipt
		}
	}
	if figuresOf(taken.Decision) != before {
		h.writes = append(h.writes, write{admission: admission{at: h.clock.instant()}, limit: l})
	}
	h.sound(l)
	return taken
}

// sound wants that no fewer units are in use than those that count, each interval between two writes at the rate of
// the later one. A raise of the rate may add less than one unit.
func (h *history) sound(l algorithms.Limit) {
	h.Helper()
	var b level
	b.level = new(big.Rat)
	for _, w := range append(h.writes, write{admission{at: h.clock.instant()}, l, algorithms.Receipt{}}) {
		b.rate = big.NewRat(w.limit.Requests(), w.limit.Window().Microseconds())
		b.charge(w.at, w.units)
	}
	free := new(big.Rat).SetInt64(h.peek(h.on("", l, 0)).Remaining - l.Burst() - 1)
	if over := free.Add(free, b.level); over.Sign() >= 0 {
		excess, _ := over.Float64()
		h.errorf("%v at %d: more is free than if the returned units had never been taken, by %.3f units",
			l, h.clock.instant()-epoch, excess+1)
	}
}
