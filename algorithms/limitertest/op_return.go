// Return: the units that it credits, and the units that it must not credit.

package limitertest

import (
	"testing"
	"time"

	"github.com/penstock-go/penstock/algorithms"
)

func runReturns(t *testing.T, s Subject) {
	s.run(t, returnRules)
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

var returnRules = []rule{
	{"a Return with a receipt of another algorithm is the caller's mistake", every, func(w *world, l algorithms.Limit) {
		taken := w.allow(w.on("", l, 5))[0]
		for _, a := range every() {
			other := a.ten()
			if a.name() == l.Algorithm().String() {
				continue
			}
			w.one(w.on("", other, 5))
			wrong := back(taken, 5)
			wrong.Limit = other
			w.invalid(wrong)
			w.invalid(as(algorithms.Grant, taken), wrong)
			w.remaining(w.on("", other, 0), 5)
			w.one(as(algorithms.Reset, w.on("", other, 0)))
		}
		w.remaining(taken, 5)
	}},
	// Receipts carry units and instants, and no limit.
	{"a Return works under a changed limit", every, func(w *world, l algorithms.Limit) {
		taken := w.allow(w.on("", l, 4))[0]
		taken.Limit = algorithmOf(l).of(20, time.Minute)
		if d := w.one(back(taken, 4)); !d.Allowed || d.Remaining != 20 {
			w.errorf("got %s, want 20 remaining", show(d))
		}
	}},

	// The later take is returned first, as deferred calls do.
	{"Returns of two takes on one key travel in one call", every, func(w *world, l algorithms.Limit) {
		calls := w.allow(w.on("", l, 3), w.on("b", l, 2), w.on("", l, 4))
		answers := w.allow(back(calls[2], 4), back(calls[1], 1), back(calls[0], 3))
		for i, want := range []int64{7, 9, 10} {
			if d := answers[i].Decision; d.Remaining != want {
				w.errorf("return %d: got %s, want %d remaining", i, show(d), want)
			}
		}
		w.full(calls[0])
		w.remaining(calls[1], 9)
	}},
	// The request runs, so it is counted even if other requests hold the limit by now. The cap bounds the memory.
	{"a Renew holds units again that have ended, beyond the limit, but not beyond twice the limit", nil, func(w *world, _ algorithms.Limit) {
		l := algorithms.Concurrent(2, time.Minute)
		ended := []algorithms.Check{w.allow(w.on("", l, 2))[0], w.allow(w.on("other", l, 2))[0]}
		ended[1].Key = ended[0].Key
		w.to(60 * second)
		later := w.allow(w.on("", l, 2))[0]
		for _, c := range ended {
			c.Op, c.Cost = algorithms.Renew, 0
			w.one(c)
		}
		w.one(back(ended[0], 2))
		w.remaining(later, 0)
		w.one(back(later, 1))
		w.remaining(later, 1)
	}},
	// After an outage, takes of one backend may be returned to the other, which does not know them.
	{"a Return of another backend's take is dropped: no error, Undecided, nothing credited", every, func(w *world, l algorithms.Limit) {
		if w.s.Foreign == nil {
			return
		}
		receipt := w.foreign(l)
		w.take(l, 5)
		c := as(algorithms.Return, w.on("", l, 3))
		c.Decision.Receipt = receipt
		grant := as(algorithms.Grant, w.on("", l, 1))
		calls := w.allow(c, grant)
		if d := calls[0].Decision; !d.Allowed || d.Source != algorithms.Undecided || d.RetryAfter != 0 {
			w.errorf("%v: got %s, want allowed, Undecided", l, show(d))
		}
		if d := calls[1].Decision; d.Remaining != 6 {
			w.errorf("%v: beside it, got %s, want 6 remaining", l, show(d))
		}
	}},
	{"a Renew of another backend's take is dropped, and keeps its receipt", every, func(w *world, l algorithms.Limit) {
		if w.s.Foreign == nil {
			return
		}
		c := as(algorithms.Renew, w.on("", l, 0))
		c.Decision.Receipt = w.foreign(l)
		want := c.Decision.Receipt
		if d := w.one(c); !d.Allowed || d.Source != algorithms.Undecided || d.Receipt != want {
			w.errorf("got %s, want allowed, undecided, and the receipt", show(d))
		}
		w.full(c)
	}},
	// The limit, the key or the clock changes between the take and its Return. Five others take meanwhile.
	{"after a Reset, a changed limit or a step of the clock, a Return credits at most its own units", timed, func(w *world, l algorithms.Limit) {
		for name, change := range map[string]func(w *world){
			"reset":   func(w *world) { w.one(as(algorithms.Reset, w.on("", l, 0))) },
			"limit":   func(w *world) { w.take(algorithmOf(l).of(10, time.Second), 1) },
			"clock":   func(w *world) { w.sleep(-time.Hour); w.take(l, 1) },
			"lowered": func(w *world) { w.one(as(algorithms.Force, w.on("", algorithmOf(l).of(2, time.Minute), 1))) },
		} {
			w := w.fresh()
			a := w.allow(w.on("", l, 4))[0]
			w.sleep(time.Second)
			change(w)
			w.take(l, 5)
			before := w.peek(a).Remaining
			if d := w.one(back(a, 4)); d.Remaining < before || d.Remaining > before+4 {
				w.errorf("%v, %s: got %s, and %d remaining before", l, name, show(d), before)
			}
		}
	}},
	{"the newest take of a leaky bucket is returned in parts, until another take comes", nil, func(w *world, _ algorithms.Limit) {
		l := algorithms.LeakyBucket(1, time.Second).WithBurst(10)
		w.take(l, 5)
		a := w.allow(w.on("", l, 3))[0]
		w.sleep(500 * time.Millisecond)
		a = w.allow(back(a, 1))[0]
		a = w.allow(back(a, 1))[0]
		w.remaining(w.on("", l, 0), 4)
		w.take(l, 1)
		w.one(back(a, 1))
		w.remaining(w.on("", l, 0), 3)
	}},
}

// foreign returns the receipt of a take by another backend.
func (w *world) foreign(l algorithms.Limit) algorithms.Receipt {
	w.Helper()
	checks := []algorithms.Check{w.on("", l, 3)}
	if err := w.s.Foreign(w, w.clock.now).Allow(w.Context(), checks); err != nil {
		w.Fatal(err)
	}
	return checks[0].Decision.Receipt
}
