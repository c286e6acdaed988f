// Calls of takes, trials, candidates and pairs: which check is allowed, and which is charged.

package limitertest

import (
	"fmt"
	"testing"

	"github.com/penstock-go/penstock/algorithms"
)

// A callCase is a call. A Take is "t", a TakeReserved "r", a TakeElse "e", a Trial "T", and a TrialInstead "I". Each
// fits ('+'), fits only in the reserve ('~'), or does not fit ('-').
type callCase struct {
	rule    string
	call    string // e.g. "t+ r~ T+"
	charged string // of every check: 'c' or '.'
}

var trialCases = []callCase{
	// No other check denies these takes and trials.
	{"a Trial without takes is charged if it fits", "T+ T-", "c."},
	{"a Trial is charged if it and every Take allow", "t+ T+ t+", "ccc"},
	{"a Trial that does not fit denies nothing", "t+ T- t+", "c.c"},
	// A denied take keeps trials from being charged, but not the other way round.
	{"a Trial is not charged if a Take after it is denied", "t+ T+ t-", "..."},
	{"a Trial is not charged if a Take before it is denied", "t- T+", ".."},
	{"a Trial that does not fit keeps no other Trial from being charged", "T- t+ T+ T-", ".cc."},
	// A candidate is charged as if it stood in the place of its take: the take's own verdict does not count.
	{"a TrialInstead does not need its Take to allow", "t- I+", ".c"},
	{"a TrialInstead whose Take allows is charged", "t+ I+", "cc"},
	{"a TrialInstead that does not fit is not charged", "t+ I-", "c."},
	{"a TrialInstead needs every other Take to allow", "t+ I+ t-", "..."},
	{"a TrialInstead needs every Take before its own to allow, too", "t- t+ I+", "..."},
	{"a TrialInstead leaves out just the Take before it", "t- t- I+", "..."},
	{"a TrialInstead leaves out the Take just before it, not the first", "t+ t- I+", "..c"},
	{"a TrialInstead leaves out the Take just before it, not the last", "t- I+ t+", ".c."},
	{"two candidates may stand for one Take", "t- I+ I+ T+", ".cc."},
	{"every candidate leaves out its own Take", "t- I+ t- I+", "...."},
	{"a denied candidate does not deny", "t+ I- t+ I+ T+", "c.ccc"},
}

var pairCases = []callCase{
	{"a TakeElse is not charged if the Take before it is", "t+ e+", "c."},
	{"the first of a pair is charged, also if the TakeElse does not fit", "t+ e-", "c."},
	{"a TakeElse is charged if the Take before it does not fit", "t- e+", ".c"},
	{"a pair of which none fits is denied", "t- e-", ".."},
	{"a denied call charges none of a pair", "t- e+ t-", "..."},
	{"a Take before a pair that is denied keeps both uncharged", "t- t+ e+", "..."},
	{"Takes around a pair are charged if one of the pair fits", "t+ t- e+ t+", "c.cc"},
	{"a Trial is charged if a pair passes", "t- e+ T+", ".cc"},
	{"a Trial is not charged if a pair is denied", "t- e- T+", "..."},
	{"a TrialInstead leaves out the pair before it", "t- e- I+", "..c"},
	{"a TrialInstead needs every pair except the one before it", "t- e- t+ I+", "...."},
	{"a TrialInstead of a pair that passes by its second take is charged", "t- e+ I+", ".cc"},
	{"a call may hold several pairs", "t- e+ t+ e+", ".cc."},
	{"a denied pair keeps the other uncharged", "t- e- t+ e+", "...."},

	{"a TakeReserved and the Take before it are charged if both fit", "t+ r+", "cc"},
	{"a TakeReserved may use the reserve if the Take before it fits", "t+ r~", "cc"},
	{"a TakeReserved without room in the reserve denies the call", "t+ r-", ".."},
	{"a TakeReserved is an ordinary Take if the one before it does not fit, and that is not charged", "t- r+", ".c"},
	{"a TakeReserved must not use the reserve if the Take before it does not fit", "t- r~", ".."},
	{"a TakeReserved that does not fit is denied, whatever is before it", "t- r-", ".."},
	{"a Take after a pair that is denied keeps both uncharged", "t+ r~ t-", "..."},
	{"Takes around a TakeReserved are charged with it", "t+ t- r+ t+", "c.cc"},
	{"trials count a TakeReserved in its reserve as allowed", "t+ r~ T+ I+", "cccc"},
	{"a TrialInstead leaves out a denied TakeReserved", "t- r~ I+", "..c"},
	{"pairs of both kinds may stand in one call", "t+ r~ t- e+", "cc.c"},
}

// A placing returns the i-th check of a call.
type placing func(w *world, i int, l algorithms.Limit, cost int64) algorithms.Check

// cell places the checks of a call on one principal.
func (w *world) cell(i int, l algorithms.Limit, cost int64) algorithms.Check {
	return w.on(fmt.Sprint("c", i), l, cost)
}

// runCases checks cases. The rules of calls whose keys lie elsewhere begin with other words.
func (s Subject) runCases(t *testing.T, words string, cases []callCase, place placing) {
	for _, tt := range cases {
		s.run(t, []rule{{words + tt.rule, func(w *world) { w.try(tt, place) }}})
	}
}

var caseOps = map[byte]algorithms.Op{
	't': algorithms.Take, 'r': algorithms.TakeReserved, 'e': algorithms.TakeElse, 'T': algorithms.Trial, 'I': algorithms.TrialInstead,
}

// try asks one case under every limit that its ops allow, first of one algorithm and then of several. 5 of 10 units are
// in use: 3 fit, 8 fit in the reserve, and 11 never do.
func (w *world) try(tt callCase, place placing) {
	w.Helper()
	all, some := every(), reserving()
	for round := range 2 * len(all) {
		mixed := round / len(all)
		var call []algorithms.Check
		for i := 0; i < len(tt.call); i += 3 {
			a, op, size := all[(round+mixed*i)%len(all)], caseOps[tt.call[i]], tt.call[i+1]
			if op == algorithms.TakeReserved {
				a = some[round%len(some)]
			}
			cost := map[byte]int64{'+': 3, '~': 8, '-': 11}[size]
			if size == '-' && mixed == 0 && op != algorithms.TakeReserved {
				cost = 8
			}
			c := place(w, 100*round+i, a.ten(), cost)
			c.Op = op
			w.one(algorithms.Check{Policy: policy, Key: c.Key, Limit: c.Limit, Cost: 5})
			call = append(call, c)
		}
		w.judge(tt, w.allow(call...))
	}
}

// judge checks the answers to a case, and returns what was charged.
func (w *world) judge(tt callCase, call []algorithms.Check) {
	w.Helper()
	proceeds := true
	for i, c := range call {
		fits, charged := tt.call[3*i+1] == '+', tt.charged[i] == 'c'
		switch c.Op {
		case algorithms.TakeElse:
			fits = fits || call[i-1].Decision.Allowed
		case algorithms.TakeReserved:
			fits = fits || tt.call[3*i+1] == '~' && call[i-1].Decision.Allowed
		}
		first := i+1 < len(call) && depends(call[i+1].Op)
		if c.Op != algorithms.Trial && c.Op != algorithms.TrialInstead && !first {
			proceeds = proceeds && fits
		}
		want := int64(5)
		if charged {
			want = max(0, 5-c.Cost)
		}
		d := c.Decision
		if d.Allowed != fits || d.Remaining != want || (d.Receipt.Units() == c.Cost) != charged || (d.RetryAfter == 0) != fits {
			w.errorf("check %d of %s, %s: got %s, want allowed %t, charged %t, %d remaining", i, tt.call, text(call), show(d), fits, charged, want)
		}
		w.remaining(c, want)
	}
	if got := algorithms.Allowed(call); got != proceeds {
		w.errorf("%s, %s: got Allowed %t, want %t", tt.call, text(call), got, proceeds)
	}
	for _, c := range call {
		w.one(back(c, c.Cost))
		w.remaining(c, 5)
	}
}
