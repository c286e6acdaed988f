// Calls of several takes, pairs and trials: all or nothing, also for several takes on one key.

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
