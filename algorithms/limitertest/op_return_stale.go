// Receipts of takes that the state does not hold any more. Returning them must credit no unit of another take.

package limitertest

import (
	"time"

	"github.com/penstock-go/penstock/algorithms"
)

var staleReturnRules = []rule{
	{
		// X and A are taken at once, and X is returned. C takes the place of X, so the state looks as A left it. But
		// without A the unit of C would have begun to drain at its own take: 0.9 of A have drained.
		"looks-the-same",
		"a Return credits what has not drained, even if the state equals the one that the take left",
		func(w *world) {
			l := algorithms.TokenBucket(1, time.Second).WithBurst(2)
			x, a := w.allow(w.on("", l, 1))[0], w.allow(w.on("", l, 1))[0]
			w.one(back(x, 1))
			w.sleep(900 * time.Millisecond)
			w.verdicts(w.allow(w.on("", l, 1)), true)
			w.one(back(a, 1))
			w.verdicts(w.allow(w.on("", l, 1)), true)
			w.sleep(100 * time.Millisecond)
			w.verdicts(w.allow(w.on("", l, 1)), false)
		},
	},
	{
		"after-a-reset",
		"a take from before a Reset is not credited after it, not even at the same instant",
		func(w *world) {
			for _, l := range limits(stringStored(), 5, time.Hour) {
				for _, pause := range []time.Duration{0, µs, time.Second, 12 * time.Minute} {
					w := w.fresh()
					a := w.allow(w.on("", l, 5))[0]
					w.one(as(algorithms.Reset, w.on("", l, 0)))
					w.sleep(pause)
					b := w.allow(w.on("", l, 5))[0]
					w.verdicts([]algorithms.Check{b}, true)
					w.one(back(a, 5))
					w.remaining(w.on("", l, 0), 0)
					w.one(back(b, 5))
					w.full(w.on("", l, 0))
				}
			}
		},
	},
	{
		"two-resets",
		"each Reset begins an era, and only takes of the present one are credited",
		func(w *world) {
			for _, l := range limits(stringStored(), 5, time.Hour) {
				w := w.fresh()
				var earlier []algorithms.Check
				for range 3 {
					earlier = append(earlier, w.allow(w.on("", l, 2))[0])
					w.one(as(algorithms.Reset, w.on("", l, 0)))
				}
				w.take(l, 4)
				for _, c := range earlier {
					w.one(back(c, 2))
				}
				w.remaining(w.on("", l, 0), 1)
			}
		},
	},
	{
		// Under the limit of a minute the five units of A are gone after two minutes. What is in use then is of B.
		"two-changes",
		"a take that another limit has forgotten is not credited under the first limit again",
		func(w *world) {
			for _, a := range limits(stringStored(), 5, time.Hour) {
				w := w.fresh()
				of := algorithmOf(a).of
				taken := w.allow(w.on("", a, 5))[0]
				w.sleep(2 * time.Minute)
				w.verdicts(w.allow(w.on("", of(5, time.Minute), 1)), !algorithmOf(a).days)
				w.allow(w.on("", a, 4))
				before := w.peek(w.on("", a, 0)).Remaining
				if algorithmOf(a).days {
					continue // the limits are the same
				}
				w.one(back(taken, 5))
				w.remaining(w.on("", a, 0), before)
			}
		},
	},
	{
		"two-rates",
		"a take that has drained at a faster rate is not credited at the slower one again",
		func(w *world) {
			slow, fast := algorithms.TokenBucket(5, time.Hour), algorithms.TokenBucket(5, time.Second)
			a := w.allow(w.on("", slow, 5))[0]
			w.sleep(2 * time.Second)
			w.verdicts(w.allow(w.on("", fast, 5)), true)
			w.one(back(a, 5))
			w.remaining(w.on("", slow, 0), 0)
		},
	},
	{
		// At ten seconds A has drained or rolled away. The clock steps back to the instant of A, with the units of B.
		"after-a-step-back",
		"a take that was gone before the clock stepped back is not credited",
		func(w *world) {
			for _, l := range limits(stringStored(), 5, 10*time.Second) {
				w := w.fresh()
				if algorithmOf(l).days {
					continue
				}
				a := w.allow(w.on("", l, 5))[0]
				w.sleep(2 * l.Window())
				w.verdicts(w.allow(w.on("", l, 5)), true)
				w.to(0)
				w.one(back(a, 5))
				w.remaining(w.on("", l, 0), 0)
			}
		},
	},
	{
		// The bucket drains a unit every 1.6 ms, and all within two seconds of the epoch of Unix.
		"before-1970",
		"a Return near the epoch leaves a state that parses and drains",
		func(w *world) {
			l := algorithms.TokenBucket(7, 11*time.Second).WithBurst(1000)
			w.clock.set(900_351)
			first := w.allow(w.on("", l, 2))[0]
			w.take(l, 1)
			w.take(l, 782)
			w.clock.set(900_352)
			first = w.allow(back(first, 1))[0]
			w.one(back(first, 1))
			d := w.take(l, 0)
			if d.Remaining < 216 || d.Remaining > 217 || d.ResetAfter == algorithms.Never {
				w.errorf("got %s, want 216 or 217 remaining", show(d))
			}
			w.honest(w.on("", l, 300))
		},
	},
}

// stringStored returns the algorithms whose states are strings: their takes have no instants of their own.
func stringStored() []algorithm {
	return which(func(a algorithm) bool { return a.storage == texts })
}
