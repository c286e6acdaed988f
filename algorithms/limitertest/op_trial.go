// Shadow limits (Trial) and candidates (TrialInstead): when they are charged, and that they affect no Take.

package limitertest

import (
	"fmt"
	"testing"
	"time"

	"github.com/penstock-go/penstock/algorithms"
)

func runTrials(t *testing.T, s Subject) {
	for _, tt := range trialCases {
		s.run(t, []rule{{tt.name, tt.rule, each(every, func(w *world, l algorithms.Limit) { w.tryTrial(tt, l) })}})
	}
	s.run(t, trialRules)
}

// A trialCase is a call of takes and trials. Each fits ('+') or not ('-'). A take is "t", a trial "T", and a candidate
// instead of the take before it "I".
type trialCase struct {
	name, rule string
	call       string // e.g. "t+ T- I+"
	charged    string // of every check: 'c' or '.'
}

var trialCases = []trialCase{
	// No other check denies these takes and trials.
	{"alone", "a Trial without takes is charged if it fits", "T+ T-", "c."},
	{"beside", "a Trial is charged if it and every Take allow", "t+ T+ t+", "ccc"},
	{"denied", "a Trial that does not fit denies nothing", "t+ T- t+", "c.c"},
	// A denied take keeps trials from being charged, but not the other way round.
	{"in-a-denied-call", "a Trial is not charged if a Take after it is denied", "t+ T+ t-", "..."},
	{"in-a-denied-call-before", "a Trial is not charged if a Take before it is denied", "t- T+", ".."},
	{"trials-are-apart", "a Trial that does not fit keeps no other Trial from being charged", "T- t+ T+ T-", ".cc."},
	// A candidate is charged as if it stood in the place of its take: the take's own verdict does not count.
	{"instead-denied", "a TrialInstead does not need its Take to allow", "t- I+", ".c"},
	{"instead-allowed", "a TrialInstead whose Take allows is charged", "t+ I+", "cc"},
	{"instead-no-fit", "a TrialInstead that does not fit is not charged", "t+ I-", "c."},
	{"instead-other", "a TrialInstead needs every other Take to allow", "t+ I+ t-", "..."},
	{"instead-other-before", "a TrialInstead needs every Take before its own to allow, too", "t- t+ I+", "..."},
	{"instead-both", "a TrialInstead leaves out just the Take before it", "t- t- I+", "..."},
	{"instead-second", "a TrialInstead leaves out the Take just before it, not the first", "t+ t- I+", "..c"},
	{"instead-first", "a TrialInstead leaves out the Take just before it, not the last", "t- I+ t+", ".c."},
	{"instead-twice", "two candidates may stand for one Take", "t- I+ I+ T+", ".cc."},
	{"instead-each", "every candidate leaves out its own Take", "t- I+ t- I+", "...."},
	{"instead-fits-not", "a denied candidate does not deny", "t+ I- t+ I+ T+", "c.ccc"},
}

// trialOps are the letters of trialCases.
var trialOps = map[byte]algorithms.Op{'t': algorithms.Take, 'T': algorithms.Trial, 'I': algorithms.TrialInstead}

// tryTrial asks one case twice: with the trials, and without them on other keys. The takes must be answered alike.
func (w *world) tryTrial(tt trialCase, l algorithms.Limit) {
	w.Helper()
	var call, live []algorithms.Check
	for i := 0; i < len(tt.call); i += 3 {
		c := w.on(fmt.Sprint("c", i), l, 3)
		if tt.call[i+1] == '-' {
			c.Cost = 8
		}
		c.Op = trialOps[tt.call[i]]
		w.one(algorithms.Check{Policy: policy, Key: c.Key, Limit: l, Cost: 5})
		call = append(call, c)
		if c.Op == algorithms.Take {
			c.Key += "live"
			w.one(algorithms.Check{Policy: policy, Key: c.Key, Limit: l, Cost: 5})
			live = append(live, c)
		}
	}
	call, live = w.allow(call...), w.allow(live...)
	if algorithms.Allowed(call) != algorithms.Allowed(live) {
		w.errorf("%s: got Allowed %t, want %t: trials do not count", text(call), algorithms.Allowed(call), algorithms.Allowed(live))
	}
	for i, c := range call {
		fits, charged := tt.call[3*i+1] == '+', tt.charged[i] == 'c'
		want := int64(5)
		if charged {
			want -= 3
		}
		d := c.Decision
		if d.Allowed != fits || d.Remaining != want || (d.Receipt.Units() == 3) != charged ||
			(d.RetryAfter == 0) != fits {
			w.errorf("check %d of %s under %v: got %s, want allowed %t, charged %t, %d remaining",
				i, tt.call, l, show(d), fits, charged, want)
		}
		w.remaining(c, want)
		if c.Op == algorithms.Take {
			w.alike(c.Decision, live[0].Decision)
			live = live[1:]
		}
	}
}

// alike wants two decisions to be equal, except for the inside of their receipts.
func (w *world) alike(got, want algorithms.Decision) {
	w.Helper()
	if show(got) != show(want) {
		w.errorf("got  %s\n\twant %s", show(got), show(want))
	}
}

var trialRules = []rule{
	{
		"up-to",
		"AllowUpTo takes what fits of n, whatever n and the units in use are, and says how many",
		each(every, func(w *world, l algorithms.Limit) {
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
		}),
	},
	{
		// A trial on the key of a take would change the take's count.
		"on-a-take's-key",
		"a Trial needs a stored key of its own, not a Take's of the same call",
		each(every, func(w *world, l algorithms.Limit) {
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
		}),
	},
	{
		"on-a-key-beside",
		"a Trial of the same key under another policy or algorithm has a key of its own",
		each(every, func(w *world, l algorithms.Limit) {
			for _, a := range others(l) {
				w := w.fresh()
				other := w.on("", a.ten(), 1)
				other.Op = algorithms.Trial
				calls := w.allow(w.on("", l, 10), as(algorithms.TrialInstead, w.on("", l, 3)), other)
				w.verdicts(calls, true, true, true)
				w.remaining(calls[0], 0)
				w.remaining(calls[1], 7)
				w.remaining(calls[2], 9)
			}
		}),
	},
	{
		// A candidate is compared with the limit before it.
		"instead-of-nothing",
		"a TrialInstead needs a Take before it",
		func(w *world) {
			l := anyTen()
			instead := as(algorithms.TrialInstead, w.on("a", l, 1))
			w.invalid(instead)
			w.invalid(instead, w.on("b", l, 1))
			w.invalid(as(algorithms.Trial, w.on("c", l, 1)), instead)
			for _, key := range []string{"a", "b", "c"} {
				w.full(as(algorithms.Trial, w.on(key, l, 0)))
				w.full(w.on(key, l, 0))
			}
		},
	},
	{
		"receipt",
		"a Trial's charge can be returned",
		each(every, func(w *world, l algorithms.Limit) {
			calls := w.allow(w.on("a", l, 1), as(algorithms.Trial, w.on("b", l, 4)))
			calls[1].Op = algorithms.Return
			if d := w.one(calls[1]); !d.Allowed || d.Remaining != 10 {
				w.errorf("%v: got %s, want 10 remaining", l, show(d))
			}
		}),
	},
	{
		"delay",
		"a Trial of a leaky bucket says how long it would hold",
		func(w *world) {
			l := the("leaky-bucket").ten()
			w.allow(as(algorithms.Trial, w.on("", l, 2)))
			if d := w.allow(as(algorithms.Trial, w.on("", l, 1)))[0].Decision; d.Delay != 12*time.Second {
				w.errorf("got %s, want a delay of 12 s", show(d))
			}
		},
	},
}
