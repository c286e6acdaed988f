// Calls whose keys lie in several slots of a Cluster, so that no single step of the store reaches them all.

package limitertest

import (
	"fmt"
	"testing"
	"time"

	"github.com/penstock-go/penstock/algorithms"
)

// AcrossSlots checks a subject whose keys lie in several slots: calls on several principals admit no more than the
// limits, and a denied call returns its units.
func AcrossSlots(t *testing.T, s Subject) {
	s.run(t, slotRules)
	for _, tt := range pairCases {
		const text = "also if their keys lie in several slots, "
		s.run(t, []rule{{tt.name, text + tt.rule, func(w *world) { w.tryPairs(tt, w.at) }}})
	}
	for _, a := range every() {
		t.Run(a.name(), func(t *testing.T) {
			t.Parallel()
			const rule = "callers of slots in opposite order never exceed the limits, and never block each other"
			l := a.of(300, 365*24*time.Hour)
			s.crowd(t, rule).slots(l)
			c := s.crowd(t, "pairs in several slots admit exactly what their limits say")
			c.otherwise(l, c.at)
			c = s.crowd(t, "shares in other slots than the limit are charged for what was admitted within them")
			c.reserved(l, c.at)
		})
	}
}

// across returns a call that takes 3 of 10 units in several slots: two principals for each algorithm.
func (w *world) across() (call []algorithms.Check) {
	for range 2 {
		for _, l := range ten() {
			call = append(call, w.at(len(call), l, 3))
		}
	}
	return call
}

// at returns a check on the i-th principal, which has a slot of its own.
func (w *world) at(i int, l algorithms.Limit, cost int64) algorithms.Check {
	c := w.on("", l, cost)
	c.Key = fmt.Sprintf("%s-%d", c.Key, i)
	return c
}

var slotRules = []rule{
	{
		"all",
		"a call over several slots whose Takes all fit charges them all",
		func(w *world) {
			call := w.allow(w.across()...)
			for i, c := range call {
				if d := c.Decision; !d.Allowed || d.Remaining != 7 || d.Receipt.Units() != 3 {
					w.errorf("check %d: got %s, want 3 of 10 charged", i, show(d))
				}
				w.remaining(c, 7)
			}
		},
	},
	{
		"nothing",
		"a call over several slots that has one Take denied leaves nothing charged, and has no receipts",
		func(w *world) {
			for denied := range w.across() {
				w := w.fresh()
				call := w.across()
				call[denied].Cost = 11
				call = w.allow(call...)
				if algorithms.Allowed(call) || call[denied].Decision.Allowed {
					w.errorf("check %d of %s: got allowed, want denied", denied, text(call))
				}
				for i, c := range call {
					if d := c.Decision; d.Receipt != (algorithms.Receipt{}) || d.Delay != 0 || d.Remaining != 10 {
						w.errorf("check %d of %s: got %s, want the untouched state and no receipt",
							i, text(call), show(d))
					}
					w.full(c)
				}
			}
		},
	},
	{
		// Only the newest take of a leaky bucket can be undone, so the last one must be returned first.
		"several-takes",
		"takes of one key are given back in the opposite order, so none stays charged",
		each(every, func(w *world, l algorithms.Limit) {
			call := w.allow(w.at(0, l, 1), w.at(0, l, 2), w.at(0, l, 3), w.at(1, l, 11))
			w.verdicts(call, true, true, true, false)
			w.full(w.at(0, l, 0))
		}),
	},
	{
		// The first try may charge some slots before another one denies. It must give its units back in time.
		"wait",
		"a caller who sleeps exactly RetryAfter of a call over several slots is admitted at the second try",
		func(w *world) {
			r := newSource(w)
			for range max(5, w.s.traces(w)) {
				w := w.fresh()
				var call []algorithms.Check
				for i := range 3 {
					l := r.anyLimit()
					c := w.at(i, l, 1+r.Int64N(l.Burst()))
					w.one(c)
					call = append(call, c)
				}
				w.honest(call...)
			}
		},
	},
	{
		"trials",
		"trials in other slots are charged if they and every Take allow, and not otherwise",
		each(every, func(w *world, l algorithms.Limit) {
			good := w.allow(
				w.at(0, l, 3), as(algorithms.Trial, w.at(1, l, 3)),
				w.at(2, l, 3), as(algorithms.TrialInstead, w.at(3, l, 3)))
			for i, c := range good {
				if d := c.Decision; !d.Allowed || d.Remaining != 7 {
					w.errorf("%v: check %d: got %s, want 7 remaining", l, i, show(d))
				}
				w.remaining(c, 7)
			}
			w = w.fresh()
			bad := w.allow(
				w.at(0, l, 3), as(algorithms.Trial, w.at(1, l, 3)),
				w.at(2, l, 11), as(algorithms.TrialInstead, w.at(3, l, 3)))
			for i, want := range []int64{10, 10, 10, 7} {
				if got := bad[i].Decision.Remaining; got != want {
					w.errorf("%v: check %d of a denied call: got %d remaining, want %d", l, i, got, want)
				}
				w.remaining(bad[i], want)
			}
		}),
	},
	{
		// The slots of a call are decided in the order of their first checks, and the second slot has the first check.
		"pair-in-opposite-order",
		"the first of a pair is decided before the second, also if an earlier check has the slot of the second",
		each(every, func(w *world, l algorithms.Limit) {
			for _, of := range reserving() {
				w, of := w.fresh(), of.ten()
				beside := w.at(1, l, 3)
				beside.Key += "|beside"
				w.verdicts(w.allow(append([]algorithms.Check{beside}, otherwise(w.at(0, l, 3), w.at(1, of, 3))...)...), true, true, true)
				w.remaining(w.at(0, l, 0), 7)
				w.full(w.at(1, of, 0))
				w.verdicts(w.allow(append([]algorithms.Check{beside}, otherwise(w.at(0, l, 8), w.at(1, of, 3))...)...), true, false, true)
				w.remaining(w.at(0, l, 0), 7)
				w.remaining(w.at(1, of, 0), 7)
				w.verdicts(w.allow(append([]algorithms.Check{beside}, reserved(w.at(0, l, 1), w.at(1, of, 10))...)...), true, true, true)
				w.remaining(beside, 1)
				w.remaining(w.at(0, l, 0), 6)
				w.remaining(w.at(1, of, 0), 0)
			}
		}),
	},
	{
		"pair-wait",
		"a caller who sleeps exactly RetryAfter of a pair in two slots is admitted at the second try",
		func(w *world) {
			r := newSource(w)
			for range max(5, w.s.traces(w)) {
				w := w.fresh()
				share, of := r.anyLimit(), r.limit(pick(r, reserving()...))
				call := []algorithms.Check{w.at(0, share, 1+r.Int64N(share.Burst())), w.at(1, of, 1+r.Int64N(of.Burst()))}
				w.one(call[0])
				w.one(as(algorithms.Force, w.at(1, of, of.Burst()+r.Int64N(of.Burst()))))
				call[1].Op = pick(r, algorithms.TakeReserved, algorithms.TakeElse)
				w.honest(call...)
			}
		},
	},
	{
		"settlements",
		"settlements of several slots travel in one call",
		each(every, func(w *world, l algorithms.Limit) {
			taken := w.allow(w.at(0, l, 3), w.at(1, l, 4), w.at(2, l, 5))
			calls := w.allow(
				back(taken[0], 2), back(taken[1], 4),
				as(algorithms.Force, w.at(2, l, 1)), as(algorithms.Grant, w.at(0, l, 1)))
			for i, want := range []int64{9, 10, 4, 10} {
				if got := calls[i].Decision.Remaining; got != want {
					w.errorf("%v: settlement %d: got %d remaining, want %d", l, i, got, want)
				}
			}
		}),
	},
	{
		"invalid",
		"a mistake in one slot charges none of the others",
		each(every, func(w *world, l algorithms.Limit) {
			bad := w.at(5, l, -1)
			w.invalid(w.at(0, l, 1), w.at(1, l, 1), bad)
			w.full(w.at(0, l, 0))
			w.full(w.at(1, l, 0))
		}),
	},
}

// slots has many callers take from pairs of keys in several slots.
func (c *crowd) slots(l algorithms.Limit) {
	var admitted [3]int64
	counts := make(chan [2]int, callers*10)
	c.each(10, func(ask func(...algorithms.Check) []algorithms.Check, g, i int) {
		x, y := g%3, (g+1+i%2)%3
		if algorithms.Allowed(ask(c.at(x, l, 1), c.at(y, l, 1))) {
			counts <- [2]int{x, y}
		}
	})
	close(counts)
	for pair := range counts {
		admitted[pair[0]]++
		admitted[pair[1]]++
	}
	for i, got := range admitted {
		used := l.Requests() - c.peek(c.at(i, l, 0)).Remaining
		if got > l.Requests() || used < got {
			c.errorf("%v: got %d of key %d admitted and %d charged, want no more than %d, and all of them charged",
				l, got, i, used, l.Requests())
		}
		// Returns of the calls that were denied may stay charged.
		if used != got && algorithmOf(l).kept == nil {
			c.errorf("%v: got %d of key %d charged, want the %d that were admitted", l, used, i, got)
		}
	}
}
