// Calls whose keys lie in several slots of a Cluster, so that no single step of the store reaches them all.

package limitertest

import (
	"fmt"
	"testing"
	"time"

	"github.com/penstock-go/penstock/algorithms"
)

// AcrossSlots checks a subject whose keys lie in several slots: calls on several principals admit no more than the
// limits, and a denied call returns its units.
func AcrossSlots(t *testing.T, s Subject) {
	s.run(t, slotRules)
	s.runCalls(t, "also if their keys lie in several slots, ", (*world).spread, true)
	for _, a := range every() {
		t.Run(a.name(), func(t *testing.T) {
			t.Parallel()
			const rule = "callers of slots in opposite order never exceed the limits, and never block each other"
			l := a.of(300, 365*24*time.Hour)
			s.crowd(t, rule).slots(l)
			c := s.crowd(t, "pairs in several slots admit exactly what their limits say")
			c.otherwise(l, c.at)
			c = s.crowd(t, "shares in other slots than the limit are charged for what was admitted within them")
			c.reserved(l, c.at)
		})
	}
}

// at returns a check on the i-th principal, which has a slot of its own.
func (w *world) at(i int, l algorithms.Limit, cost int64) algorithms.Check {
	c := w.on("", l, cost)
	c.Key = fmt.Sprintf("%s-%d", c.Key, i)
	return c
}

// spread returns a check on one of three principals, so that some keys share a slot.
func (w *world) spread(i int, l algorithms.Limit, cost int64) algorithms.Check {
	c := w.at(i%3, l, cost)
	c.Key += fmt.Sprint("|", i)
	return c
}

var slotRules = []rule{
	// Only the newest take of a leaky bucket can be undone, so the last one must be returned first.
	{"takes of one key are given back in the opposite order, so none stays charged", every, func(w *world, l algorithms.Limit) {
		call := w.allow(w.at(0, l, 1), w.at(0, l, 2), w.at(0, l, 3), w.at(1, l, 11))
		if !call[2].Decision.Allowed || algorithms.Allowed(call) {
			w.errorf("%s: got %s, and allowed %t, want only the last denied", text(call), show(call[2].Decision), algorithms.Allowed(call))
		}
		w.full(w.at(0, l, 0))
	}},
	// The first try may charge some slots before another one denies. It must give its units back in time.
	{"a caller who sleeps exactly RetryAfter of a call over several slots is admitted at the second try", nil, func(w *world, _ algorithms.Limit) {
		r := newSource(w)
		for range max(5, w.s.traces(w)) {
			w.fresh().honestCall(r, (*world).spread)
		}
	}},
	{"a mistake in one slot charges none of the others", every, func(w *world, l algorithms.Limit) {
		bad := w.at(5, l, -1)
		w.invalid(w.at(0, l, 1), w.at(1, l, 1), bad)
		w.full(w.at(0, l, 0))
		w.full(w.at(1, l, 0))
	}},
}

// slots has many callers take from pairs of keys in several slots.
func (c *crowd) slots(l algorithms.Limit) {
	var admitted [3]int64
	counts := make(chan [2]int, callers*10)
	c.each(10, func(ask func(...algorithms.Check) []algorithms.Check, g, i int) {
		x, y := g%3, (g+1+i%2)%3
		if algorithms.Allowed(ask(c.at(x, l, 1), c.at(y, l, 1))) {
			counts <- [2]int{x, y}
		}
	})
	close(counts)
	for pair := range counts {
		admitted[pair[0]]++
		admitted[pair[1]]++
	}
	for i, got := range admitted {
		used := l.Requests() - c.peek(c.at(i, l, 0)).Remaining
		if got > l.Requests() || used < got {
			c.errorf("%v: got %d of key %d admitted and %d charged, want no more than %d, and all of them charged",
				l, got, i, used, l.Requests())
		}
		// Returns of the calls that were denied may stay charged.
		if used != got && algorithmOf(l).kept == nil {
			c.errorf("%v: got %d of key %d charged, want the %d that were admitted", l, used, i, got)
		}
	}
}
