// Returns across backends, after changes of a limit, and to queues.

package limitertest

import (
	"time"

	"github.com/penstock-go/penstock/algorithms"
)

var otherReturnRules = []rule{
	{
		// After an outage, takes of one backend may be returned to the other, which does not know them.
		"other-backend",
		"a Return of another backend's take is dropped: no error, Undecided, nothing credited",
		each(every, func(w *world, l algorithms.Limit) {
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
		}),
	},
	{
		"renew-other-backend",
		"a Renew of another backend's take is dropped, and keeps its receipt",
		each(every, func(w *world, l algorithms.Limit) {
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
		}),
	},
	{
		// The limit, the key or the clock changes between the take and its Return. Five others take meanwhile.
		"after-a-change",
		"after a Reset, a changed limit or a step of the clock, a Return credits at most its own units",
		each(timed, func(w *world, l algorithms.Limit) {
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
		}),
	},
	{
		"queue-in-parts",
		"the newest take of a leaky bucket is returned in parts, until another take comes",
		func(w *world) {
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
		},
	},
	{
		// Two of five leave the front of the queue. The requests behind them have their Delays, so a newcomer still
		// waits for five.
		"queue",
		"a place in the middle of a leaky bucket's queue stays empty",
		func(w *world) {
			l := the("leaky-bucket").ten()
			first := w.allow(w.on("", l, 2))[0]
			w.take(l, 3)
			w.one(back(first, 2))
			if d := w.take(l, 1); d.Delay != 30*time.Second {
				w.errorf("got %s, want to be held until the five before have drained, 30 s", show(d))
			}
		},
	},
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
