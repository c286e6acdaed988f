package limitertest

import (
	"testing"
	"time"

	"github.com/penstock-go/penstock/algorithms"
)

// runSettlements checks Force, Grant and Reset beyond the plain cases of runOps.
func runSettlements(t *testing.T, s Subject) { s.runEach(t, settlementRules) }

var settlementRules = []eachRule{
	{"debt-has-a-floor", "Force goes into at most one burst of debt; what exceeds it is dropped", func(w *world, l algorithms.Limit) {
		for _, cost := range []int64{3, 9, 5, 20, 1 << 40, 1<<63 - 1} {
			w.one(as(algorithms.Force, w.on("", l, cost)))
		}
		w.one(as(algorithms.Grant, w.on("", l, 9)))
		w.remaining(w.on("", l, 0), 0)
		w.one(as(algorithms.Grant, w.on("", l, 2)))
		w.remaining(w.on("", l, 0), 1)
	}},
	{"debt-in-one-step", "one Force of any cost goes into exactly one burst of debt", func(w *world, l algorithms.Limit) {
		w.one(as(algorithms.Force, w.on("", l, 1<<63-1)))
		w.one(as(algorithms.Grant, w.on("", l, 10)))
		w.remaining(w.on("", l, 0), 0)
		w.one(as(algorithms.Grant, w.on("", l, 1)))
		w.remaining(w.on("", l, 0), 1)
	}},
	{"debt-is-dropped", "what exceeds one burst of debt is dropped, and does not come back under a raised limit", func(w *world, l algorithms.Limit) {
		w.one(as(algorithms.Force, w.on("", l, 100)))
		w.remaining(w.on("", constructorOf(l)(30, time.Minute), 0), 10)
	}},
	{"debt-is-waited-off", "debt delays later requests, and no longer than it takes to drain", func(w *world, l algorithms.Limit) {
		w.take(l, 10)
		w.one(as(algorithms.Force, w.on("", l, 4)))
		for _, cost := range []int64{0, 1, 5, 10} {
			w := w.fresh()
			w.take(l, 10)
			w.one(as(algorithms.Force, w.on("", l, 4)))
			w.honest(w.on("", l, cost))
		}
	}},
	{"force-after-takes", "Force charges on top of what is in use", func(w *world, l algorithms.Limit) {
		w.take(l, 6)
		if d := w.one(as(algorithms.Force, w.on("", l, 3))); d.Remaining != 1 {
			w.errorf("got %s, want 1 remaining", show(d))
		}
		w.remaining(w.on("", l, 0), 1)
	}},
	{"grant-never-above-full", "Grant never credits above full, whatever its cost", func(w *world, l algorithms.Limit) {
		for _, cost := range []int64{1, 11, 1 << 31, 1<<63 - 1} {
			if d := w.one(as(algorithms.Grant, w.on("", l, cost))); d.Remaining != 10 || d.ResetAfter != 0 {
				w.errorf("grant of %d to a full key: got %s", cost, show(d))
			}
			w.take(l, 3)
			if d := w.one(as(algorithms.Grant, w.on("", l, max(cost, 3)))); d.Remaining != 10 || d.ResetAfter != 0 {
				w.errorf("grant of %d to 7 of 10: got %s", max(cost, 3), show(d))
			}
			w.empty(w.on("", l, 0))
			if d := w.take(l, 11); d.Allowed {
				w.errorf("got 11 of 10 allowed after a grant of %d", cost)
			}
		}
	}},
	{"grant-in-the-next-window", "Grant credits units of the previous window, too: it is a gift in units in use", func(w *world, l algorithms.Limit) {
		w.take(l, 10)
		w.to(30*second + 1)
		if d := w.one(as(algorithms.Grant, w.on("", l, 10))); d.Remaining != 10 {
			w.errorf("got %s, want all 10 remaining", show(d))
		}
	}},
	{"nothing", "settlements of 0 change nothing", func(w *world, l algorithms.Limit) {
		w.take(l, 4)
		before := w.peek(w.on("", l, 0))
		for _, op := range settlements[:3] {
			if d := w.one(as(op, w.on("", l, 0))); figuresOf(d) != before || !d.Allowed {
				w.errorf("%v of 0: got %s, want %+v", op, show(d), before)
			}
			if got := w.peek(w.on("", l, 0)); got != before {
				w.errorf("after %v of 0: got %+v, want %+v", op, got, before)
			}
		}
	}},
	{"on-a-fresh-key", "settlements of a key without state answer the full limit", func(w *world, l algorithms.Limit) {
		want := algorithms.Decision{Allowed: true, Source: w.s.Source, Remaining: 10}
		for _, op := range []algorithms.Op{algorithms.Return, algorithms.Grant, algorithms.Reset} {
			if d := w.one(as(op, w.on("", l, 3))); d != want {
				w.errorf("%v: got %s, want %s", op, show(d), show(want))
			}
			w.empty(w.on("", l, 0))
		}
	}},
	{"step-back", "settlements repair a state from the future, too", func(w *world, l algorithms.Limit) {
		w.take(l, 10)
		w.to(-60 * second)
		d := w.one(as(algorithms.Grant, w.on("", l, 1)))
		if d.Remaining != 1 || d.ResetAfter > 2*time.Minute {
			w.errorf("got %s, want 1 remaining", show(d))
		}
		w.honest(w.on("", l, 5))
	}},
	{"grant-writes", "a Grant writes, also when all has drained already: nothing is left that a step back could revive", func(w *world, l algorithms.Limit) {
		w.take(l, 5)
		w.sleep(3 * time.Minute)
		c := as(algorithms.Grant, w.on("", l, 5))
		w.one(c)
		w.empty(c)
		w.to(-60 * second)
		w.full(c)
	}},
}
