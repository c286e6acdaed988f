// Package limitertest, which a minor version may change, tests services that use penstock, and Limiters.
//
// # Testing your service
//
// Each of these has an Example, in the file of this folder:
//
//	example_synctest_test.go   a Memory inside testing/synctest needs nothing else: waits take no time
//	example_clock_test.go      a Memory with a clock of yours (MemoryOptions.Now) decides at any date; fields
//	                           may have jitter of the real one
//	example_redis_test.go      a redis-server of the test's own, for several instances
//	example_miniredis_test.go  a Redis inside the test, whose clock the test sets
//	example_outage_test.go     a Fake, whose Fail shows what clients see under FailOpen and FailClosed
//
// With miniredis, SetTime moves limits, and FastForward moves only TTLs. The limiter needs two options:
//
//	m := miniredis.RunT(t)
//	m.SetTime(now)
//	rdb := redis.NewClient(&redis.Options{Addr: m.Addr()})
//	limiter, err := shared.New(rdb, &shared.Options{
//		Views: shared.ViewsOff, // a denial ends when the clock says so
//		Deadline:      10 * time.Second,    // a busy machine is no outage
//	})
//
// Give each test its own Memory, or its own shared.Options.Prefix in Redis. After FLUSHALL, denials are remembered for a
// second. Except in a Memory, units return and bans begin soon after the response: before a test moves its clock, it waits
// for the Event Banned of an Observer, or for the units.
//
// # Testing a Limiter
//
// [Run] checks that a Limiter of your own keeps the rules: what each op does and charges, and that every figure of a
// Decision is honest, for every algorithm. A failure prints the call, the difference and the rule. If your limiter has only
// some of the algorithms or ops, or no clock that tests can set, say so in the [Subject].
//
//	You need                                  Use
//	all rules, for one Limiter                Run
//	the rules of calls over several slots     AcrossSlots
//	two Limiters that must answer alike       Differential
//	a limiter that fails when a test says so  Fake
//
// Failed random tests print their seed. PENSTOCK_SEED repeats it, and PENSTOCK_TRACES sets the number of traces.
package limitertest

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/penstock-go/penstock/algorithms"
)

// A Subject is a kind of Limiter to test.
type Subject struct {
	// New returns a limiter whose clock is now, nil for the real one. The end of the test closes it.
	New func(tb testing.TB, now func() time.Time) algorithms.Limiter

	// Foreign is New for another backend; nil if there is none.
	Foreign func(tb testing.TB, now func() time.Time) algorithms.Limiter

	// Shared says that all limiters made by New share one store.
	Shared bool

	// Source is the Source of the decisions.
	Source algorithms.Source

	// Traces is the number of random traces per test; 0 means 1.
	Traces int

	// Store is nil if tests cannot see the store.
	Store Store

	// Claims reports whether the limiter claims to decide a call: its algorithms, ops and costs, and how many checks it
	// holds. Nil means all calls. A rule that makes another call is skipped: it is neither kept nor broken.
	Claims func(checks []algorithms.Check) bool

	// Except has rules that the limiter does not claim to keep, in the words of their failures. They are skipped.
	Except []string

	// RealClock says that New ignores its clock. Rules in which time passes are skipped, and waits are compared in whole
	// seconds. A rule fails if a window turns within it: claim algorithms whose windows do not follow the wall clock.
	RealClock bool

	tally *tally
}

// A tally counts rules by their ends, for each algorithm where they hold for each.
type tally struct{ kept, broken, skipped atomic.Int64 }

// count adds the rule of a test at its end.
func (c *tally) count(tb testing.TB) {
	tb.Cleanup(func() {
		switch {
		case tb.Failed():
			c.broken.Add(1)
		case tb.Skipped():
			c.skipped.Add(1)
		default:
			c.kept.Add(1)
		}
	})
}

// Run checks that a subject keeps every rule that it claims. A group of rules that are all skipped is skipped, too. With
// -v, or after a failure, the last line counts the rules.
func Run(t *testing.T, s Subject) {
	all := new(tally)
	t.Cleanup(func() {
		t.Logf("limitertest: %d rules kept, %d broken, %d skipped", all.kept.Load(), all.broken.Load(), all.skipped.Load())
	})
	for _, group := range []struct {
		name string
		run  func(*testing.T, Subject)
	}{
		{"Algorithms", runAlgorithms},
		{"Vectors", runVectors},
		{"Definitions", runDefinitions},
		{"Doubles", runDoubles},
		{"Logs", runLogs},
		{"Ops", only(opRules)},
		{"Trials", only(trialRules)},
		{"Pairs", runPairs},
		{"Calls", runCalls},
		{"Honesty", runHonesty},
		{"Returns", runReturns},
		{"Invalid", runInvalid},
		{"Limits", only(limitRules)},
		{"Keys", only(keyRules)},
		{"Concurrency", runConcurrency},
		{"Ownership", runOwnership},
		{"Store", runStore},
		{"Corrupt", runCorrupt},
		{"Peers", only(peerRules)},
	} {
		t.Run(group.name, func(t *testing.T) {
			t.Parallel()
			s := s
			s.tally = new(tally)
			t.Run("rules", func(t *testing.T) { group.run(t, s) })
			c := s.tally
			all.kept.Add(c.kept.Load())
			all.broken.Add(c.broken.Load())
			all.skipped.Add(c.skipped.Load())
			if c.kept.Load()+c.broken.Load() == 0 && !t.Failed() {
				t.Skip("no rule of this group applies")
			}
		})
	}
}

// only returns the check of a group that has only rules.
func only(rules []rule) func(*testing.T, Subject) {
	return func(t *testing.T, s Subject) { s.run(t, rules) }
}

// A rule is one thing that must hold, in words, and its check. It is checked once, or for each of some algorithms, under
// ten per minute, or ten per day if the windows are days. So it states times in the limit's windows.
type rule struct {
	rule string
	of   func() []algorithm // nil: the algorithm does not matter
	run  func(w *world, limit algorithms.Limit)
}

// run checks every rule in worlds of its own.
func (s Subject) run(t *testing.T, rules []rule) {
	for _, r := range rules {
		t.Run(r.rule, func(t *testing.T) {
			t.Parallel()
			if r.of == nil {
				r.run(s.world(t, r.rule), the("token-bucket").ten())
				return
			}
			for _, a := range r.of() {
				t.Run(a.name(), func(t *testing.T) { r.run(s.world(t, r.rule), a.ten()) })
			}
		})
	}
}
