// Force, Grant and Reset beyond the plain cases: debt, full keys, fresh keys, and steps of the clock.

package limitertest

import (
	"testing"
	"time"

	"github.com/penstock-go/penstock/algorithms"
)

func runSettlements(t *testing.T, s Subject) { s.runEach(t, settlementRules) }

var settlementRules = []eachRule{
	{
		// Twenty units are in use at most: ten taken and ten of debt. Ten back leave 10, and one more 9. The largest
		// cost that a Check can express shows a sum that overflows.
		"debt-has-a-floor",
		"Force goes into at most one burst of debt, and drops the rest",
		func(w *world, l algorithms.Limit) {
			for _, costs := range [][]int64{{3, 9, 5, 20, 1 << 40, 1<<63 - 1}, {1<<63 - 1}} {
				w := w.fresh()
				for _, cost := range costs {
					w.one(as(algorithms.Force, w.on("", l, cost)))
				}
				w.one(as(algorithms.Grant, w.on("", l, 10)))
				w.remaining(w.on("", l, 0), 0)
				w.one(as(algorithms.Grant, w.on("", l, 1)))
				w.remaining(w.on("", l, 0), 1)
			}
		},
	},
	{
		// Of 100 units 20 are kept, so 10 of 30 remain.
		"debt-is-dropped",
		"units beyond one burst of debt are dropped, and do not come back under a raised limit",
		func(w *world, l algorithms.Limit) {
			w.one(as(algorithms.Force, w.on("", l, 100)))
			w.remaining(w.on("", algorithmOf(l).of(30, time.Minute), 0), 10)
		},
	},
	{
		// With 14 units in use, a cost of 0 fits after 4 have come back, and a cost of 10 after 14.
		"debt-is-waited-off",
		"debt delays later requests, and no longer than it takes to drain",
		func(w *world, l algorithms.Limit) {
			for _, cost := range []int64{0, 1, 5, 10} {
				w := w.fresh()
				w.take(l, 10)
				w.one(as(algorithms.Force, w.on("", l, 4)))
				w.honest(w.on("", l, cost))
			}
		},
	},
	{
		// A denial of 11 shows that nothing was saved up beyond the burst.
		"grant-never-above-full",
		"Grant never credits above full, whatever its cost",
		func(w *world, l algorithms.Limit) {
			for _, cost := range []int64{1, 11, 1 << 31, 1<<63 - 1} {
				if d := w.one(as(algorithms.Grant, w.on("", l, cost))); d.Remaining != 10 || d.ResetAfter != 0 {
					w.errorf("grant of %d to a full key: got %s", cost, show(d))
				}
				w.take(l, 3)
				d := w.one(as(algorithms.Grant, w.on("", l, max(cost, 3))))
				if d.Remaining != 10 ||
					d.ResetAfter != 0 {
					w.errorf("grant of %d to 7 of 10: got %s", max(cost, 3), show(d))
				}
				w.empty(w.on("", l, 0))
				if d := w.take(l, 11); d.Allowed {
					w.errorf("got 11 of 10 allowed after a grant of %d", cost)
				}
			}
		},
	},
	{
		// Half a window and one µs later the epoch's window has turned. A sliding counter still counts its units.
		"grant-in-the-next-window",
		"Grant credits any units in use, also those of the previous window",
		func(w *world, l algorithms.Limit) {
			w.take(l, 10)
			w.sleep(l.Window()/2 + µs)
			if d := w.one(as(algorithms.Grant, w.on("", l, 10))); d.Remaining != 10 {
				w.errorf("got %s, want all 10 remaining", show(d))
			}
		},
	},
	{
		"nothing",
		"settlements of 0 change nothing",
		func(w *world, l algorithms.Limit) {
			w.take(l, 4)
			before := w.peek(w.on("", l, 0))
			for _, op := range settlements[:3] {
				if d := w.one(as(op, w.on("", l, 0))); figuresOf(d) != before || !d.Allowed {
					w.errorf("%v of 0: got %s, want %+v", op, show(d), before)
				}
				w.unchanged(w.on("", l, 0), before)
			}
		},
	},
	{
		// None of them may make a key: an attacker could fill the store with them.
		"on-a-fresh-key",
		"settlements of a key without state answer the full limit",
		func(w *world, l algorithms.Limit) {
			want := algorithms.Decision{Allowed: true, Source: w.s.Source, Remaining: 10}
			for _, op := range []algorithms.Op{algorithms.Return, algorithms.Grant, algorithms.Reset} {
				if d := w.one(as(op, w.on("", l, 3))); d != want {
					w.errorf("%v: got %s, want %s", op, show(d), show(want))
				}
				w.empty(w.on("", l, 0))
			}
		},
	},
	{
		// The clock steps back by a window, far beyond the tolerance. Without a repair the key would be exhausted for
		// more than a window.
		"step-back",
		"settlements repair a state from the future, too",
		func(w *world, l algorithms.Limit) {
			w.take(l, 10)
			w.sleep(-l.Window())
			d := w.one(as(algorithms.Grant, w.on("", l, 1)))
			if d.Remaining != 1 || d.ResetAfter > 2*l.Window() {
				w.errorf("got %s, want 1 remaining", show(d))
			}
			w.honest(w.on("", l, 5))
		},
	},
	{
		// After three windows the Grant finds a state in which nothing counts. If it left that state, a step back of
		// the clock would make its units count again.
		"grant-writes",
		"a Grant also writes when all units have drained, so a step back of the clock revives none",
		func(w *world, l algorithms.Limit) {
			w.take(l, 5)
			w.sleep(3 * l.Window())
			c := as(algorithms.Grant, w.on("", l, 5))
			w.one(c)
			w.empty(c)
			w.to(0)
			w.sleep(-l.Window())
			w.full(c)
		},
	},
	{
		// Ten of 40 units come back under a limit of another rate, burst or window. The limit of the takes shows them.
		"grant-under-another-limit",
		"a Grant credits its units, whatever limit it names",
		func(w *world, l algorithms.Limit) {
			a := algorithmOf(l)
			for _, window := range []time.Duration{
				l.Window() / 1000, l.Window() / 100, l.Window() / 10, l.Window() * 10, l.Window() * 100, l.Window() * 1000,
			} {
				for _, requests := range []int64{3, 40, 400} {
					w := w.fresh()
					whole := a.of(40, l.Window())
					w.take(whole, 20)
					w.sleep(l.Window() / 100)
					w.take(whole, 20)
					w.sleep(l.Window() / 100)
					before := w.peek(w.on("", whole, 0)).Remaining
					w.one(as(algorithms.Grant, w.on("", a.of(requests, min(window, 400*24*time.Hour)), 10)))
					w.remaining(w.on("", whole, 0), before+10)
				}
			}
		},
	},
	{
		"grant-keeps-the-expiry",
		"a Grant leaves the key's expiry alone",
		func(w *world, l algorithms.Limit) {
			if w.s.Store == nil {
				return
			}
			a := algorithmOf(l)
			for _, window := range []time.Duration{time.Second, time.Hour, 400 * 24 * time.Hour} {
				w := w.fresh()
				c := w.allow(w.on("", a.of(40, time.Hour), 20))[0]
				before := w.s.Store.TTL(w, c)
				w.one(as(algorithms.Grant, w.on("", a.of(40, window), 10)))
				if after := w.s.Store.TTL(w, c); after > before || after < before-time.Minute {
					w.errorf("%v: got a key that lives for %v, and for %v before", window, after, before)
				}
			}
		},
	},
}
