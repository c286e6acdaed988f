// Ops beyond their definitions: settlements in order, under other limits and after steps of the clock, and mixtures.

package limitertest

import (
	"time"

	"github.com/penstock-go/penstock/algorithms"
)

// empty wants no key in the store, if it can be seen.
func (w *world) empty(c algorithms.Check) {
	w.Helper()
	if w.s.Store == nil {
		return
	}
	if got := w.s.Store.Stored(w, c); got != "" {
		w.errorf("%v: got %q stored, want no key", c.Limit, got)
	}
}

var takes = []algorithms.Op{algorithms.Take, algorithms.Trial, algorithms.TrialInstead}

var settlements = []algorithms.Op{
	algorithms.Return, algorithms.Force, algorithms.Grant, algorithms.Reset, algorithms.Renew,
}

var opRules = []rule{
	// A denied Take would leave it open whether the settlements beside it count.
	{"a call of takes and settlements is an error, and charges nothing", nil, func(w *world, l algorithms.Limit) {
		held := w.on("held", l, 4)
		w.one(held)
		for _, take := range takes {
			for _, settlement := range settlements {
				a := as(take, w.on("a", l, 1))
				b := as(settlement, w.on("held", l, 2))
				first := w.on("b", l, 1)
				w.invalid(first, a, b)
				w.invalid(b, first, a)
				w.invalid(b, as(algorithms.Force, w.on("b", l, 1)), a)
				w.full(a)
				w.full(first)
				w.remaining(held, 6)
			}
		}
	}},
	{"a call without checks is valid", nil, func(w *world, _ algorithms.Limit) {
		if err := w.limiter.Allow(w.Context(), nil); err != nil {
			w.errorf("got error %v, want none", err)
		}
	}},

	// Of 100 units 20 are kept, so 10 of 30 remain.
	{"units beyond one burst of debt are dropped, and do not come back under a raised limit", every, func(w *world, l algorithms.Limit) {
		w.one(as(algorithms.Force, w.on("", l, 100)))
		w.remaining(w.on("", algorithmOf(l).of(30, time.Minute), 0), 10)
	}},
	// The clock steps back by a window, far beyond the tolerance. Without a repair the key would be exhausted for
	// more than a window.
	{"settlements repair a state from the future, too", every, func(w *world, l algorithms.Limit) {
		w.take(l, 10)
		w.sleep(-l.Window())
		d := w.one(as(algorithms.Grant, w.on("", l, 1)))
		if d.Remaining != 1 || d.ResetAfter > 2*l.Window() {
			w.errorf("got %s, want 1 remaining", show(d))
		}
		w.honest(w.on("", l, 5))
	}},
	// After three windows the Grant finds a state in which nothing counts. If it left that state, a step back of
	// the clock would make its units count again.
	{"a Grant also writes when all units have drained, so a step back of the clock revives none", every, func(w *world, l algorithms.Limit) {
		w.take(l, 5)
		w.sleep(3 * l.Window())
		c := as(algorithms.Grant, w.on("", l, 5))
		w.one(c)
		w.empty(c)
		w.to(0)
		w.sleep(-l.Window())
		w.full(c)
	}},
	// Ten of 40 units come back under a limit of another rate, burst or window. The limit of the takes shows them.
	{"a Grant credits its units, whatever limit it names", every, func(w *world, l algorithms.Limit) {
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
	}},
	{"a Grant leaves the key's expiry alone", every, func(w *world, l algorithms.Limit) {
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
	}},
}
