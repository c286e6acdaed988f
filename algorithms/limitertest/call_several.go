// Calls of several takes: all or nothing, also for several takes on one key.

package limitertest

import (
	"fmt"
	"slices"
	"testing"

	"github.com/penstock-go/penstock/algorithms"
)

func runCalls(t *testing.T, s Subject) {
	s.run(t, callRules("", (*world).cell))
	for _, tt := range sameKeyCases {
		s.run(t, []rule{{tt.rule, each(every, func(w *world, l algorithms.Limit) { w.trySameKey(tt, l) })}})
	}
}

// callRules are the rules of calls whose checks have these places. Their words begin with others.
func callRules(words string, place placing) []rule {
	return []rule{
		{words + "a call that has one Take denied charges none, and every check has its own verdict", func(w *world) {
			// Costs above 2^40 are cut before a script sees them. The cut must not make them fit.
			for _, cost := range []int64{9, 11, 1 << 40, 1<<40 + 1, 1<<62 + 1, 1<<63 - 1} {
				for denied := range every() {
					w := w.fresh()
					call := w.eightOfTen(place, 2)
					call[denied].Cost = cost
					w.nothing(call, func(i int) bool { return i != denied })
					if got := call[denied].Decision.RetryAfter; (got == algorithms.Never) != (cost > 10) {
						w.errorf("%v, cost %d: got RetryAfter %v", call[denied].Limit, cost, got)
					}
				}
			}
		}},
		{words + "every denied check of a call says so, also after the first", func(w *world) {
			for fits := range every() {
				w := w.fresh()
				call := w.eightOfTen(place, 9)
				call[fits].Cost = 2
				w.nothing(call, func(i int) bool { return i == fits })
			}
		}},
		{words + "the limit of nobody keeps the others of its call from being charged", func(w *world) {
			const at = 2
			call := slices.Insert(w.eightOfTen(place, 2), at, w.on("no", algorithms.Nobody(), 0))
			w.nothing(call, func(i int) bool { return i != at })
			want := algorithms.Decision{Source: w.s.Source, RetryAfter: algorithms.Never, UnitAfter: algorithms.Never}
			if got := call[at].Decision; got != want {
				w.errorf("got %s, want %s", show(got), show(want))
			}
		}},
		{words + "a call whose Takes all fit charges them all, however many they are, and whatever their algorithms", func(w *world) {
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
		}},
	}
}

// eightOfTen leaves 8 of 10 units on one key of each algorithm, and returns a call that takes cost from all of them.
func (w *world) eightOfTen(place placing, cost int64) (call []algorithms.Check) {
	w.Helper()
	for i, l := range ten() {
		w.one(place(w, i, l, 2))
		call = append(call, place(w, i, l, cost))
	}
	return call
}

// nothing asks a call that is denied, and wants its keys and figures unchanged.
func (w *world) nothing(call []algorithms.Check, allowed func(i int) bool) {
	w.Helper()
	var before []figures
	for _, c := range call {
		if c.Limit == algorithms.Nobody() {
			before = append(before, figures{UnitAfter: algorithms.Never})
			continue
		}
		before = append(before, w.peek(c))
	}
	call = w.allow(call...)
	if algorithms.Allowed(call) {
		w.errorf("%s: got allowed, want denied", text(call))
	}
	for i, c := range call {
		d := c.Decision
		if d.Allowed != allowed(i) || d.Allowed != (d.RetryAfter == 0) || d.Delay != 0 ||
			d.Receipt != (algorithms.Receipt{}) || figuresOf(d) != before[i] {
			w.errorf("check %d of %s: got %s, want allowed %t, the untouched figures, %+v, and no receipt",
				i, text(call), show(d), allowed(i), before[i])
		}
		if c.Limit == algorithms.Nobody() {
			continue
		}
		w.unchanged(c, before[i])
	}
}

// A sameKeyCase is a call of several Takes on one key that has 10 units.
type sameKeyCase struct {
	rule      string
	costs     []int64
	allowed   []bool
	remaining []int64 // after each
	never     []bool
}

var sameKeyCases = []sameKeyCase{
	{"Takes on one key add up, and each shows the state after its own charge",
		[]int64{3, 4}, []bool{true, true}, []int64{7, 3}, []bool{false, false}},
	{"Takes on one key add up, however many they are",
		[]int64{3, 3, 4}, []bool{true, true, true}, []int64{7, 4, 0}, []bool{false, false, false}},
	{"Takes on one key that fit one by one do not fit together",
		[]int64{6, 6}, []bool{true, false}, []int64{10, 10}, []bool{false, true}},
	{"every Take is judged with all those before it on its key",
		[]int64{4, 4, 4}, []bool{true, true, false}, []int64{10, 10, 10}, []bool{false, false, true}},
	{"a Take that does not fit counts against those after it on its key",
		[]int64{11, 1}, []bool{false, false}, []int64{10, 10}, []bool{true, true}},
	{"a cost of 0 is judged with the Takes before it, too",
		[]int64{10, 0}, []bool{true, true}, []int64{0, 0}, []bool{false, false}},
	{"huge costs do not overflow when they add up",
		[]int64{1<<63 - 1, 1<<63 - 1, 1}, []bool{false, false, false}, []int64{10, 10, 10}, []bool{true, true, true}},
	{"a huge cost after one that fits does not overflow",
		[]int64{1, 1<<63 - 1}, []bool{true, false}, []int64{10, 10}, []bool{false, true}},
}

// trySameKey asks one case, with another key between the takes of the same one.
func (w *world) trySameKey(tt sameKeyCase, l algorithms.Limit) {
	w.Helper()
	var call []algorithms.Check
	for i, cost := range tt.costs {
		// The two are on one key, also when another key stands between them.
		call = append(call, w.on("", l, cost), w.on(fmt.Sprint("between", i), l, 1))
	}
	call = w.allow(call...)
	proceeds := !slices.Contains(tt.allowed, false)
	for i := range tt.costs {
		d := call[2*i].Decision
		if d.Allowed != tt.allowed[i] || d.Remaining != tt.remaining[i] ||
			(d.RetryAfter == algorithms.Never) != tt.never[i] {
			w.errorf("check %d of %s: got %s, want allowed %t, %d remaining, Never %t",
				i, text(call), show(d), tt.allowed[i], tt.remaining[i], tt.never[i])
		}
		if want := tt.costs[i]; proceeds && d.Receipt.Units() != want {
			w.errorf("check %d of %s: got a receipt of %d units, want %d", i, text(call), d.Receipt.Units(), want)
		}
		w.remaining(call[2*i+1], map[bool]int64{true: 9, false: 10}[proceeds])
	}
	w.remaining(call[0], tt.remaining[len(tt.remaining)-1])
	if !proceeds {
		w.full(call[0])
	}
	w.sleep(2 * l.Window())
	w.full(call[0])
}
