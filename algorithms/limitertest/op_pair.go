// Pairs of takes: TakeReserved, which shares a limit fairly when it is full, and TakeElse, which puts one quota behind
// another.

package limitertest

import (
	"testing"

	"github.com/penstock-go/penstock/algorithms"
)

func runPairs(t *testing.T, s Subject) {
	s.runCases(t, "", pairCases, (*world).cell)
	s.run(t, pairRules)
	s.runRandomPairs(t)
}

// reserving returns the algorithms that have a reserve, as documented.
func reserving() []algorithm {
	return which(func(a algorithm) bool { return a.name() == "token-bucket" || a.family == window && !a.fades })
}

// reserved returns the pair of a tenant's share and the limit that tenants share.
func reserved(share, of algorithms.Check) []algorithms.Check {
	of.Op = algorithms.TakeReserved
	return []algorithms.Check{share, of}
}

// otherwise returns the pair of two quotas, the second behind the first.
func otherwise(first, second algorithms.Check) []algorithms.Check {
	second.Op = algorithms.TakeElse
	return []algorithms.Check{first, second}
}

var pairRules = []rule{
	{"a cost of 0 charges nothing, and a cost above the burst never fits, also with a reserve", each(reserving, func(w *world, l algorithms.Limit) {
		w.verdicts(w.allow(reserved(w.on("a", l, 1), w.on("b", l, 11))...), true, false)
		w.verdicts(w.allow(reserved(w.on("a", l, 0), w.on("b", l, 0))...), true, true)
		w.verdicts(w.allow(otherwise(w.on("a", l, 0), w.on("b", l, 1))...), true, true)
		w.verdicts(w.allow(otherwise(w.on("a", l, 11), w.on("b", l, 12))...), false, false)
		w.full(w.on("a", l, 0))
		w.full(w.on("b", l, 0))
		w.verdicts(w.allow(otherwise(w.on("a", l, 11), w.on("b", l, 0))...), false, true)
	})},
	{"Nobody as the first of a pair never fits, and as the second it adds nothing", each(reserving, func(w *world, l algorithms.Limit) {
		w.verdicts(w.allow(otherwise(w.on("a", algorithms.Nobody(), 1), w.on("b", l, 1))...), false, true)
		w.verdicts(w.allow(otherwise(w.on("b", l, 1), w.on("a", algorithms.Nobody(), 1))...), true, true)
		w.verdicts(w.allow(reserved(w.on("a", algorithms.Nobody(), 1), w.on("b", l, 1))...), false, true)
		w.verdicts(w.allow(reserved(w.on("b", l, 1), w.on("a", algorithms.Nobody(), 1))...), true, false)
		w.remaining(w.on("b", l, 0), 7)
		denied := w.allow(otherwise(w.on("b", l, 8), w.on("a", algorithms.Nobody(), 1))...)
		if first, pair := denied[0].Decision.RetryAfter, denied[1].Decision.RetryAfter; first == 0 || pair != first {
			w.errorf("%s: got RetryAfter %v, want that of the first, %v", text(denied), pair, first)
		}
	})},
	{"the second of a pair needs a Take just before it, and both need keys of their own", each(reserving, func(w *world, l algorithms.Limit) {
		for _, op := range []algorithms.Op{algorithms.TakeReserved, algorithms.TakeElse} {
			a, b, c, second := w.on("a", l, 1), w.on("b", l, 1), w.on("c", l, 1), as(op, w.on("d", l, 1))
			w.invalid(second)
			w.invalid(second, a)
			w.invalid(as(algorithms.Trial, a), second)
			w.invalid(a, as(algorithms.TrialInstead, b), second)
			w.invalid(a, second, as(op, b))
			w.invalid(a, as(op, a))
			w.invalid(a, b, a, second)
			w.invalid(a, second, a)
			w.invalid(w.on("d", l, 1), a, second)
			w.invalid(a, second, w.on("d", l, 1))
			w.invalid(a, second, c, as(op, w.on("d", l, 1)))
			w.invalid(as(algorithms.Force, a), second)
			for _, name := range []string{"a", "b", "c", "d"} {
				w.full(w.on(name, l, 0))
			}
		}
	})},
	{"a limit whose debt is not paid off at its rate has no reserve", each(every, func(w *world, l algorithms.Limit) {
		for _, a := range reserving() {
			if a.name() == l.Algorithm().String() {
				return
			}
		}
		w.invalid(reserved(w.on("a", l, 1), w.on("b", l, 1))...)
	})},
}
