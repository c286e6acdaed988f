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
	runUndone(t, s)
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
		"untouched",
		"a take that is returned at once leaves no trace",
		func(w *world, l algorithms.Limit) {
			w.take(l, 3)
			before := w.peek(w.on("", l, 0))
			taken := w.allow(w.on("", l, 4))[0]
			if d := w.one(back(taken, 4)); figuresOf(d) != before || d.Receipt.Units() != 0 {
				w.errorf("got %s, want %+v", show(d), before)
			}
			w.unchanged(taken, before)
		},
	},
	{
		// Two of ten are taken for good. The fourth part is larger than the two units left, and the fifth finds none.
		// The units of the receipt bound the credit, so no sum overflows.
		"in-parts",
		"a take can be returned in parts, and no more than it took",
		func(w *world, l algorithms.Limit) {
			w.take(l, 2)
			taken := w.allow(w.on("", l, 5))[0]
			for _, step := range []struct{ cost, remaining, left int64 }{
				{1, 4, 4}, {0, 4, 4}, {2, 6, 2}, {1<<63 - 1, 8, 0}, {9, 8, 0},
			} {
				taken = w.allow(back(taken, step.cost))[0]
				if d := taken.Decision; !d.Allowed || d.Remaining != step.remaining || d.Receipt.Units() != step.left {
					w.errorf("return of %d: got %s, want %d remaining and a receipt of %d",
						step.cost, show(d), step.remaining, step.left)
				}
			}
			w.remaining(taken, 8)
		},
	},
	{
		"zero-receipt",
		"a Return of the zero Receipt does nothing",
		func(w *world, l algorithms.Limit) {
			w.take(l, 4)
			before := w.peek(w.on("", l, 0))
			d := w.one(as(algorithms.Return, w.on("", l, 3)))
			if !d.Allowed || figuresOf(d) != before || d.Receipt != (algorithms.Receipt{}) ||
				w.peek(w.on("", l, 0)) != before {
				w.errorf("got %s, want %+v and no receipt", show(d), before)
			}
		},
	},
	{
		// After two windows and a second nothing of the take is in use, not even in a sliding counter. All that is in
		// use now was taken later. Only a token bucket credits it.
		"after-all-has-gone",
		"a Return credits nothing after the take has refilled or rolled away, except in a token bucket",
		func(w *world, l algorithms.Limit) {
			taken := w.allow(w.on("", l, 5))[0]
			w.sleep(2*l.Window() + time.Second)
			w.take(l, 7)
			want := int64(3)
			if algorithmOf(l).name() == "token-bucket" {
				want = 8
			}
			if d := w.one(back(taken, 5)); !d.Allowed || d.Remaining != want {
				w.errorf("got %s, want %d remaining", show(d), want)
			}
			w.remaining(taken, want)
		},
	},
	{
		// One window later only a sliding counter still counts the take. The five units of the present window must
		// stay.
		"next-window",
		"a Return whose take has left the present window credits no unit of a later one",
		func(w *world, l algorithms.Limit) {
			taken := w.allow(w.on("", l, 10))[0]
			w.sleep(l.Window())
			w.take(l, 5)
			before := w.peek(taken)
			d := w.one(back(taken, 10))
			if algorithmOf(l).name() == "token-bucket" {
				if d.Remaining != 10 {
					w.errorf("got %s, want no unit in use", show(d))
				}
				return
			}
			if algorithmOf(l).fades {
				if d.Remaining != 5 {
					w.errorf("got %s, want the previous window's units gone, 5 remaining", show(d))
				}
				return
			}
			if figuresOf(d) != before {
				w.errorf("got %s, want %+v", show(d), before)
			}
		},
	},
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
