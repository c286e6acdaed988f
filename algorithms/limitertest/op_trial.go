// Shadow limits (Trial) and candidates (TrialInstead), beyond their definitions.

package limitertest

import (
	"testing"

	"github.com/penstock-go/penstock/algorithms"
)

func runTrials(t *testing.T, s Subject) { s.run(t, trialRules) }

var trialRules = []rule{
	{"AllowUpTo takes what fits of n, whatever n and the units in use are, and says how many", every, func(w *world, l algorithms.Limit) {
		if l.Algorithm().Concurrent() {
			return
		}
		for n := range int64(14) {
			for used := range l.Burst() + 1 {
				w := w.fresh()
				c := w.on("", l, used)
				c.Policy = "default"
				w.one(c)
				want := min(n, l.Burst()-used)
				got, d, err := algorithms.AllowUpTo(w.Context(), w.limiter, c.Key, l, n)
				if err != nil || got != want || d.Allowed != (got == n) || d.Remaining != l.Burst()-used-want || (d.RetryAfter == 0) != d.Allowed || d.Receipt.Units() != 0 {
					w.errorf("up to %d of %d under %v: got %d, %s, error %v, want %d", n, l.Burst()-used, l, got, show(d), err, want)
				}
				w.remaining(c, l.Burst()-used-want)
			}
		}
	}},
	// A trial on the key of a take would change the take's count.
	{"a Trial needs a stored key of its own, not a Take's of the same call", every, func(w *world, l algorithms.Limit) {
		take := w.on("", l, 1)
		for _, op := range takes[1:] {
			trial := w.on("", l, 1)
			trial.Op = op
			w.invalid(take, trial)
			w.invalid(w.on("other", l, 1), take, w.on("more", l, 1), trial)
			trial.Limit = l.WithBurst(l.Burst())
			if op == algorithms.Trial {
				w.invalid(trial, take)
			}
			w.full(take)
			w.full(w.on("other", l, 1))
		}
	}},
	// A candidate is compared with the limit before it.
	{"a TrialInstead needs a Take before it", nil, func(w *world, l algorithms.Limit) {
		instead := as(algorithms.TrialInstead, w.on("a", l, 1))
		w.invalid(instead)
		w.invalid(instead, w.on("b", l, 1))
		w.invalid(as(algorithms.Trial, w.on("c", l, 1)), instead)
		for _, key := range []string{"a", "b", "c"} {
			w.full(as(algorithms.Trial, w.on(key, l, 0)))
			w.full(w.on(key, l, 0))
		}
	}},
}
