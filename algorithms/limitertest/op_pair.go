// Pairs of takes: TakeReserved, which shares a limit fairly when it is full, and TakeElse, which puts one quota behind
// another.

package limitertest

import (
	"fmt"
	"testing"
	"time"

	"github.com/penstock-go/penstock/algorithms"
)

func runPairs(t *testing.T, s Subject) {
	for _, tt := range pairCases {
		s.run(t, []rule{{tt.name, tt.rule, func(w *world) { w.tryPairs(tt, w.cell) }}})
	}
	s.run(t, pairRules)
	s.runRandomPairs(t)
}

// reserving returns the algorithms that have a reserve, as documented.
func reserving() []algorithm {
	return which(func(a algorithm) bool { return a.name() == "token-bucket" || a.family == window && !a.fades })
}

// A pairCase is a call with pairs. A take is "t", a TakeReserved "r", a TakeElse "e", a trial "T", and a candidate "I".
// Each fits ('+'), fits only in the reserve ('~'), or does not fit ('-').
type pairCase struct {
	name, rule string
	call       string // e.g. "t+ r~ T+"
	charged    string // of every check: 'c' or '.'
}

var pairCases = []pairCase{
	{"else-both-fit", "a TakeElse is not charged if the Take before it is", "t+ e+", "c."},
	{"else-first-fits", "the first of a pair is charged, also if the TakeElse does not fit", "t+ e-", "c."},
	{"else-second-fits", "a TakeElse is charged if the Take before it does not fit", "t- e+", ".c"},
	{"else-none-fits", "a pair of which none fits is denied", "t- e-", ".."},
	{"else-denied-after", "a denied call charges none of a pair", "t- e+ t-", "..."},
	{"else-denied-before", "a Take before a pair that is denied keeps both uncharged", "t- t+ e+", "..."},
	{"else-beside", "Takes around a pair are charged if one of the pair fits", "t+ t- e+ t+", "c.cc"},
	{"else-trial", "a Trial is charged if a pair passes", "t- e+ T+", ".cc"},
	{"else-trial-denied", "a Trial is not charged if a pair is denied", "t- e- T+", "..."},
	{"else-instead", "a TrialInstead leaves out the pair before it", "t- e- I+", "..c"},
	{"else-instead-other", "a TrialInstead needs every pair except the one before it", "t- e- t+ I+", "...."},
	{"else-instead-passed", "a TrialInstead of a pair that passes by its second take is charged", "t- e+ I+", ".cc"},
	{"else-twice", "a call may hold several pairs", "t- e+ t+ e+", ".cc."},
	{"else-twice-denied", "a denied pair keeps the other uncharged", "t- e- t+ e+", "...."},

	{"reserved-both-fit", "a TakeReserved and the Take before it are charged if both fit", "t+ r+", "cc"},
	{"reserved-only", "a TakeReserved may use the reserve if the Take before it fits", "t+ r~", "cc"},
	{"reserved-full", "a TakeReserved without room in the reserve denies the call", "t+ r-", ".."},
	{"reserved-ordinary", "a TakeReserved is an ordinary Take if the one before it does not fit, and that is not charged", "t- r+", ".c"},
	{"reserved-beyond", "a TakeReserved must not use the reserve if the Take before it does not fit", "t- r~", ".."},
	{"reserved-none", "a TakeReserved that does not fit is denied, whatever is before it", "t- r-", ".."},
	{"reserved-denied-after", "a Take after a pair that is denied keeps both uncharged", "t+ r~ t-", "..."},
	{"reserved-beside", "Takes around a TakeReserved are charged with it", "t+ t- r+ t+", "c.cc"},
	{"reserved-trials", "trials count a TakeReserved in its reserve as allowed", "t+ r~ T+ I+", "cccc"},
	{"reserved-instead", "a TrialInstead leaves out a denied TakeReserved", "t- r~ I+", "..c"},
	{"reserved-and-else", "pairs of both kinds may stand in one call", "t+ r~ t- e+", "cc.c"},
}

// cell returns the i-th check of a case.
func (w *world) cell(i int, l algorithms.Limit, cost int64) algorithms.Check {
	return w.on(fmt.Sprint("c", i), l, cost)
}

// tryPairs asks one case under every limit that its ops allow. 5 of 10 units are in use: 3 fit, 8 fit in the reserve,
// and 11 never do.
func (w *world) tryPairs(tt pairCase, place func(i int, l algorithms.Limit, cost int64) algorithms.Check) {
	w.Helper()
	ops := map[byte]algorithms.Op{
		't': algorithms.Take, 'r': algorithms.TakeReserved, 'e': algorithms.TakeElse, 'T': algorithms.Trial, 'I': algorithms.TrialInstead,
	}
	all, some := every(), reserving()
	for round := range all {
		var call []algorithms.Check
		for i := 0; i < len(tt.call); i += 3 {
			a := all[(round+i)%len(all)]
			if tt.call[i] == 'r' {
				a = some[round%len(some)]
			}
			c := place(100*round+i, a.ten(), map[byte]int64{'+': 3, '~': 8, '-': 11}[tt.call[i+1]])
			c.Op = ops[tt.call[i]]
			w.one(algorithms.Check{Policy: policy, Key: c.Key, Limit: c.Limit, Cost: 5})
			call = append(call, c)
		}
		w.wantPairs(tt, w.allow(call...))
	}
}

// wantPairs checks the answers to a case.
func (w *world) wantPairs(tt pairCase, call []algorithms.Check) {
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
	{
		"return",
		"a Return goes back to the limit that was charged",
		each(every, func(w *world, l algorithms.Limit) {
			plan, credits := w.on("plan", l, 6), w.on("credits", l, 6)
			for round, at := range []algorithms.Check{plan, credits} {
				call := w.allow(otherwise(plan, credits)...)
				w.remaining(at, 4)
				if got := call[1-round].Decision.Receipt; got != (algorithms.Receipt{}) {
					w.errorf("%s: got a receipt of %d units for the take that was not charged", text(call), got.Units())
				}
				w.one(as(algorithms.Return, call[round]))
				w.full(at)
				if round == 0 {
					w.take2(plan)
				}
			}
		}),
	},
	{
		"reserve-is-debt",
		"units of the reserve come back at the limit's rate, before any of the burst",
		func(w *world) {
			l := algorithms.TokenBucket(10, 10*time.Second)
			share := w.on("share", algorithms.TokenBucket(100, 10*time.Second), 10)
			for i, want := range []bool{true, true, false} {
				call := w.allow(reserved(share, w.on("", l, 10))...)
				if algorithms.Allowed(call) != want {
					w.errorf("take %d of 10: got allowed %t, want %t", i, !want, want)
				}
			}
			w.sleep(10 * time.Second)
			if d := w.take(l, 1); d.Allowed || d.RetryAfter != time.Second {
				w.errorf("got %s after the reserve has drained, want the burst used, and a unit in 1 s", show(d))
			}
		},
	},
	{
		"costs",
		"a cost of 0 charges nothing, and a cost above the burst never fits, also with a reserve",
		each(reserving, func(w *world, l algorithms.Limit) {
			w.verdicts(w.allow(reserved(w.on("a", l, 1), w.on("b", l, 11))...), true, false)
			w.verdicts(w.allow(reserved(w.on("a", l, 0), w.on("b", l, 0))...), true, true)
			w.verdicts(w.allow(otherwise(w.on("a", l, 0), w.on("b", l, 1))...), true, true)
			w.verdicts(w.allow(otherwise(w.on("a", l, 11), w.on("b", l, 12))...), false, false)
			w.full(w.on("a", l, 0))
			w.full(w.on("b", l, 0))
			w.verdicts(w.allow(otherwise(w.on("a", l, 11), w.on("b", l, 0))...), false, true)
		}),
	},
	{
		"nobody",
		"Nobody as the first of a pair never fits, and as the second it adds nothing",
		each(reserving, func(w *world, l algorithms.Limit) {
			w.verdicts(w.allow(otherwise(w.on("a", algorithms.Nobody(), 1), w.on("b", l, 1))...), false, true)
			w.verdicts(w.allow(otherwise(w.on("b", l, 1), w.on("a", algorithms.Nobody(), 1))...), true, true)
			w.verdicts(w.allow(reserved(w.on("a", algorithms.Nobody(), 1), w.on("b", l, 1))...), false, true)
			w.verdicts(w.allow(reserved(w.on("b", l, 1), w.on("a", algorithms.Nobody(), 1))...), true, false)
			w.remaining(w.on("b", l, 0), 7)
			denied := w.allow(otherwise(w.on("b", l, 8), w.on("a", algorithms.Nobody(), 1))...)
			if first, pair := denied[0].Decision.RetryAfter, denied[1].Decision.RetryAfter; first == 0 || pair != first {
				w.errorf("%s: got RetryAfter %v, want that of the first, %v", text(denied), pair, first)
			}
		}),
	},
	{
		"invalid",
		"the second of a pair needs a Take just before it, and both need keys of their own",
		each(reserving, func(w *world, l algorithms.Limit) {
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
		}),
	},
	{
		"no-reserve",
		"a limit whose debt is not paid off at its rate has no reserve",
		each(every, func(w *world, l algorithms.Limit) {
			for _, a := range reserving() {
				if a.name() == l.Algorithm().String() {
					return
				}
			}
			w.invalid(reserved(w.on("a", l, 1), w.on("b", l, 1))...)
		}),
	},
}

// take2 takes all units of a check's key.
func (w *world) take2(c algorithms.Check) {
	w.Helper()
	c.Cost = c.Limit.Burst()
	w.one(c)
}
