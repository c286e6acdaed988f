// Calls of several takes, pairs and trials: all or nothing, also for several takes on one key. Trials are shadow limits,
// and a TrialInstead is a candidate.

package limitertest

import (
	"fmt"
	"testing"

	"github.com/penstock-go/penstock/algorithms"
)

func runCalls(t *testing.T, s Subject) { s.runCalls(t, "", (*world).cell, false) }

// A placing returns the i-th check of a call.
type placing func(w *world, i int, l algorithms.Limit, cost int64) algorithms.Check

// cell places the checks of a call on one principal.
func (w *world) cell(i int, l algorithms.Limit, cost int64) algorithms.Check {
	return w.on(fmt.Sprint("c", i), l, cost)
}

// runCalls checks calls whose checks have these places. The rules begin with other words. If apart, the figures of two
// checks on one key are not compared.
func (s Subject) runCalls(t *testing.T, words string, place placing, apart bool) {
	s.run(t, []rule{{words + "a call whose Takes all fit charges them all, however many they are, and whatever their algorithms", nil, func(w *world, _ algorithms.Limit) {
		// A script reads the keys of a call in portions.
		const rounds, keys = 3, 14 // 294 checks of seven algorithms
		var call []algorithms.Check
		for range rounds {
			for i, l := range ten() {
				for key := range keys {
					call = append(call, place(w, i*keys+key, l, 3))
				}
			}
		}
		call = w.allow(call...)
		for i, c := range call {
			w.remaining(c, 10-3*rounds)
			round := i / (len(call) / rounds)
			want := int64(10 - 3*(round+1))
			if d := c.Decision; !d.Allowed || d.Remaining != want || d.Receipt.Units() != 3 {
				w.errorf("check %d, %v: got %s, want 3 units charged and %d remaining", i, c.Limit, show(d), want)
			}
		}
	}}})
	const rule = "a call charges all of its Takes or none, every check has its own verdict, and pairs and trials depend on Takes as defined"
	t.Run("histories", func(t *testing.T) { s.runHistories(t, words+rule, historyKeys, place, apart) })
}

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
