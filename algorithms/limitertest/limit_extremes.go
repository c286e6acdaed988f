// The limit of nobody, and trials that never fit.

package limitertest

import (
	"testing"

	"github.com/penstock-go/penstock/algorithms"
)

func runExtremes(t *testing.T, s Subject) {
	s.run(t, nobodyRules)
	s.runEach(t, costRules)
}

var nobodyRules = []rule{
	// Nobody's limit needs no store, and answers zeros beside Never.
	{"the limit of nobody denies every Take and Trial, even of cost 0", func(w *world) {
		want := algorithms.Decision{Source: w.s.Source, RetryAfter: algorithms.Never, UnitAfter: algorithms.Never}
		for _, cost := range []int64{0, 1, 1<<63 - 1} {
			if got := w.one(w.on("", algorithms.Nobody(), cost)); got != want {
				w.errorf("cost %d: got %s, want %s", cost, show(got), show(want))
			}
			trial := w.allow(w.on("a", anyTen(), 1), as(algorithms.Trial, w.on("", algorithms.Nobody(), cost)))
			if got := trial[1].Decision; got != want {
				w.errorf("trial of %d: got %s, want %s", cost, show(got), show(want))
			}
		}
	}},
	{"a Trial of the limit of nobody affects no Take", each(every, func(w *world, l algorithms.Limit) {
		nobody := as(algorithms.TrialInstead, w.on("b", algorithms.Nobody(), 1))
		calls := w.allow(w.on("a", l, 1), nobody, w.on("c", l, 2))
		w.verdicts(calls, true, false, true)
		w.remaining(calls[0], 9)
		w.remaining(calls[2], 8)
	})},
	// The candidate would admit where the live limit blocks.
	{"a candidate can be charged where the live limit is Nobody", func(w *world) {
		l := anyTen()
		calls := w.allow(w.on("a", algorithms.Nobody(), 1), as(algorithms.TrialInstead, w.on("b", l, 1)))
		w.verdicts(calls, false, true)
		w.remaining(calls[1], 9)
	}},
	// A client that is blocked for good must not fail the settlements of its earlier requests.
	{"settlements on the limit of nobody do nothing", func(w *world) {
		for _, op := range settlements {
			l := anyTen()
			calls := w.allow(as(op, w.on("", algorithms.Nobody(), 5)), as(algorithms.Force, w.on("", l, 1)))
			w.verdicts(calls, true, true)
			d := calls[0].Decision
			if d.Remaining != 0 || d.ResetAfter != 0 || d.RetryAfter != 0 || d.Receipt.Units() != 0 {
				w.errorf("%v: got %s, want zeros", op, show(d))
			}
			w.remaining(calls[1], 9)
			w = w.fresh()
		}
		if d := w.one(w.on("", algorithms.Nobody(), 0)); d.Allowed {
			w.errorf("got allowed after a Grant and a Reset, want denied")
		}
	}},
}

var costRules = []eachRule{
	{"a Trial above the burst is denied for ever", func(w *world, l algorithms.Limit) {
		for _, cost := range []int64{11, 1<<40 + 1, 1<<63 - 1} {
			calls := w.allow(w.on("", l, 1), as(algorithms.Trial, w.on("", l, cost)))
			w.verdicts(calls, true, false)
			if d := calls[1].Decision; d.RetryAfter != algorithms.Never || d.Remaining != 10 {
				w.errorf("cost %d: got %s, want Never and 10 remaining", cost, show(d))
			}
		}
		w.remaining(w.on("", l, 0), 7)
	}},
}
