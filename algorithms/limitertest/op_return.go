// Return: the units that it credits, and the units that it must not credit.

package limitertest

import (
	"testing"
	"time"

	"github.com/penstock-go/penstock/algorithms"
)

func runReturns(t *testing.T, s Subject) {
	s.runEach(t, returnRules)
	s.run(t, otherReturnRules)
	runUtility(t, s)
	for _, burst := range []int64{1, 2, 3, 5, 10, 20} {
		t.Run("simulated", func(t *testing.T) {
			t.Parallel()
			r := newSource(t)
			for range max(1, s.traces(t)/20) {
				const rule = "final costs never exceed burst + rate × time + the units taken before the interval and returned in it"
				s.world(t, rule).simulate(r, burst)
			}
		})
	}
}

// back returns the Return of cost units of a take.
func back(taken algorithms.Check, cost int64) algorithms.Check {
	taken.Op, taken.Cost = algorithms.Return, cost
	return taken
}

var returnRules = []eachRule{
	{
		"other-algorithm",
		"a Return with a receipt of another algorithm is the caller's mistake",
		func(w *world, l algorithms.Limit) {
			taken := w.allow(w.on("", l, 5))[0]
			for _, a := range others(l) {
				other := a.ten()
				w.one(w.on("", other, 5))
				wrong := back(taken, 5)
				wrong.Limit = other
				w.invalid(wrong)
				w.invalid(as(algorithms.Grant, taken), wrong)
				w.remaining(w.on("", other, 0), 5)
				w.one(as(algorithms.Reset, w.on("", other, 0)))
			}
			w.remaining(taken, 5)
		},
	},
	{
		// Receipts carry units and instants, and no limit.
		"other-limit",
		"a Return works under a changed limit",
		func(w *world, l algorithms.Limit) {
			taken := w.allow(w.on("", l, 4))[0]
			taken.Limit = algorithmOf(l).of(20, time.Minute)
			if d := w.one(back(taken, 4)); !d.Allowed || d.Remaining != 20 {
				w.errorf("got %s, want 20 remaining", show(d))
			}
		},
	},
	{
		// The later take is returned first, as deferred calls do.
		"two-in-one-call",
		"Returns of two takes on one key travel in one call",
		func(w *world, l algorithms.Limit) {
			calls := w.allow(w.on("", l, 3), w.on("b", l, 2), w.on("", l, 4))
			answers := w.allow(back(calls[2], 4), back(calls[1], 1), back(calls[0], 3))
			for i, want := range []int64{7, 9, 10} {
				if d := answers[i].Decision; d.Remaining != want {
					w.errorf("return %d: got %s, want %d remaining", i, show(d), want)
				}
			}
			w.full(calls[0])
			w.remaining(calls[1], 9)
		},
	},
}
