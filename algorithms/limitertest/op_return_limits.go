// Returns under changed limits: a take is credited unless another limit has forgotten its units.

package limitertest

import (
	"time"

	"github.com/penstock-go/penstock/algorithms"
)

var limitReturnRules = []rule{
	{
		// A write under the lower limit leaves two of A's ten units, twice its burst. Then a Force replaces one of them.
		"lowered-and-raised",
		"a take whose units a lower limit has forgotten is not credited under the first limit again",
		func(w *world) {
			for _, a := range limits(stringStored(), 10, time.Hour) {
				w := w.fresh()
				taken := w.allow(w.on("", a, 10))[0]
				w.one(as(algorithms.Force, w.on("", lower(a), 1)))
				w.one(as(algorithms.Grant, w.on("", lower(a), 1)))
				w.one(as(algorithms.Force, w.on("", lower(a), 1)))
				before := w.peek(w.on("", a, 0)).Remaining
				w.one(back(taken, 10))
				w.remaining(w.on("", a, 0), before)
			}
		},
	},
	{
		"lowered-for-the-return",
		"a take is returned exactly under a lower limit, in parts",
		func(w *world) {
			for _, a := range limits(stringStored(), 10, time.Hour) {
				w := w.fresh()
				taken := w.allow(w.on("", a, 10))[0]
				taken.Limit = lower(a)
				taken = w.allow(back(taken, 8))[0]
				w.remaining(w.on("", a, 0), 8)
				w.one(back(taken, 2))
				w.full(w.on("", a, 0))
				if a.Algorithm() == algorithms.LeakyBucket(1, time.Hour).Algorithm() {
					continue // only the latest take can be returned
				}
				taken = w.allow(w.on("", a, 6))[0]
				w.take(a, 2)
				taken.Limit = lower(a)
				w.one(back(taken, 6))
				w.remaining(w.on("", a, 0), 8)
			}
		},
	},
	{
		// The fast limit needs the state for a second, the receipt of A for more than a minute.
		"returned-under-another-rate",
		"a state that notes its rate lives no shorter than before",
		func(w *world) {
			w.s.returns = true
			slow, fast := algorithms.TokenBucket(1, 10*time.Second).WithBurst(10), algorithms.TokenBucket(10, time.Second)
			a := w.allow(w.on("", slow, 9))[0]
			latest := w.allow(w.on("", slow, 1))[0]
			latest.Limit = fast
			w.outlives(a, func() { w.one(back(latest, 1)) })
		},
	},
	{
		// Under the limit of a minute the five units of A are gone after two minutes. The units in use then are B's.
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
		// The write under the limit of a second must not expire the state that a receipt of an hour needs.
		"two-changes-later",
		"a take that another limit has forgotten is not credited, even if that limit's state has expired",
		func(w *world) {
			for _, a := range limits(stringStored(), 5, time.Hour) {
				w := w.fresh()
				if algorithmOf(a).days || algorithmOf(a).family == bucket {
					continue // a day is the shortest; and a bucket knows its instants
				}
				taken := w.allow(w.on("", a, 5))[0]
				w.sleep(3 * time.Second)
				w.outlives(taken, func() { w.allow(w.on("", algorithmOf(a).of(5, time.Second), 1)) })
				w.sleep(2 * time.Minute)
				w.verdicts(w.allow(w.on("", a, 4)), true)
				before := w.peek(w.on("", a, 0)).Remaining
				w.one(back(taken, 5))
				w.remaining(w.on("", a, 0), before)
			}
		},
	},
}

// lower returns a limit of one unit, of the same algorithm and window. A bucket keeps its rate.
func lower(l algorithms.Limit) algorithms.Limit {
	if l.Algorithm().Continuous() {
		return l.WithBurst(1)
	}
	return algorithmOf(l).of(1, l.Window())
}
