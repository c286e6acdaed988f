// Package limitertest checks that a Limiter keeps the rules: what each op does, what is charged and what never is,
// and that every figure of a Decision is honest. Every rule is checked for every algorithm. A failure prints the rule.
//
//	| You need                                         | Use          |
//	|--------------------------------------------------|--------------|
//	| all rules, for one Limiter                       | Run          |
//	| the rules of calls whose keys lie in many places | AcrossSlots  |
//	| two Limiters that must answer alike              | Differential |
//	| the definitions, in rational numbers             | Ideal        |
//
// Random tests print their seed when they fail. The environment variable PENSTOCK_SEED repeats it, and
// PENSTOCK_TRACES sets the number of random traces per test.
package limitertest

import (
	"testing"
	"time"

	"github.com/penstock-go/penstock/algorithms"
)

// A Subject is a kind of Limiter, and what a test may see of its world.
type Subject struct {
	// New returns a limiter whose clock is now; nil means the real clock. The end of the test closes it.
	New func(tb testing.TB, now func() time.Time) algorithms.Limiter

	// Foreign is New for a limiter of another backend; nil if there is none at hand.
	Foreign func(tb testing.TB, now func() time.Time) algorithms.Limiter

	// Shared says that all limiters made by New share one store.
	Shared bool

	// Source is that of the decisions.
	Source algorithms.Source

	// Traces is the number of random traces per test; 0 means 100.
	Traces int

	// Stored returns the text in the store under the key of a check, "" if there is none: of a list the elements,
	// joined by spaces. Nil if the store cannot be seen; the three below are nil then, too.
	Stored func(tb testing.TB, c algorithms.Check) string

	// Plant replaces what is stored under the key of a check, without an expiry. The kind is "string", "list" (of the
	// fields of raw), "zset" (of fields score/member) or "hash" (of one field).
	Plant func(tb testing.TB, c algorithms.Check, kind, raw string)

	// Kind returns the kind of what is stored under the key of a check, "none" if there is nothing.
	Kind func(tb testing.TB, c algorithms.Check) string

	// TTL returns how long the key of a check will live: 0 if it is gone, negative if it lives for ever.
	TTL func(tb testing.TB, c algorithms.Check) time.Duration
}

// Run checks that a subject keeps every rule.
func Run(t *testing.T, s Subject) {
	for _, group := range []struct {
		name string
		run  func(*testing.T, Subject)
	}{
		{"Vectors", runVectors},
		{"Doubles", runDoubles},
		{"Logs", runLogs},
		{"Ops", runOps},
		{"Trials", runTrials},
		{"Calls", runCalls},
		{"Honesty", runHonesty},
		{"Settlements", runSettlements},
		{"Returns", runReturns},
		{"Holds", runHolds},
		{"Invalid", runInvalid},
		{"Extremes", runExtremes},
		{"Limits", runLimits},
		{"Keys", runKeys},
		{"Concurrency", runConcurrency},
		{"Ownership", runOwnership},
		{"Store", runStore},
		{"Corrupt", runCorrupt},
		{"Peers", runPeers},
	} {
		t.Run(group.name, func(t *testing.T) {
			t.Parallel()
			group.run(t, s)
		})
	}
}

// A rule is one thing that must hold, in words, and what checks it.
type rule struct {
	name string
	rule string
	run  func(w *world)
}

// run checks every rule in a world of its own.
func (s Subject) run(t *testing.T, rules []rule) {
	for _, r := range rules {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			r.run(s.world(t, r.rule))
		})
	}
}

// runEach checks every rule for every algorithm, under ten requests per minute.
func (s Subject) runEach(t *testing.T, rules []eachRule) {
	for _, r := range rules {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			for _, limit := range ten() {
				t.Run(limit.Algorithm().String(), func(t *testing.T) { r.run(s.world(t, r.rule), limit) })
			}
		})
	}
}

// An eachRule is a rule that holds for every algorithm; the limit is ten per minute.
type eachRule struct {
	name string
	rule string
	run  func(w *world, limit algorithms.Limit)
}

// ten returns ten per minute, of every algorithm.
func ten() []algorithms.Limit {
	var limits []algorithms.Limit
	for _, of := range constructors {
		limits = append(limits, of(10, time.Minute))
	}
	return limits
}

var constructors = []func(int64, time.Duration) algorithms.Limit{
	algorithms.TokenBucket,
	algorithms.LeakyBucket,
	algorithms.SlidingWindowCounter,
	algorithms.SlidingWindowLog,
	algorithms.FixedWindow,
	algorithms.Concurrent,
}
