// What the tests share: limiters with leases over a fake, and ways to make keys
// hot.

package lease

import (
	"cmp"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/algorithms/limitertest"
)

// errDown is what a fake in trouble answers with.
var errDown = errors.New("out of reach")

// leaseStats are the counts of leases in algorithms.Stats.
type leaseStats struct {
	Keys  int
	Units int64

	Blocks, Leased, Spent, Returned, Lost uint64
}

// accounted reports whether every unit that was leased has been spent, returned or
// lost.
func (s leaseStats) accounted() bool {
	return s.Units == 0 && s.Leased == s.Spent+s.Returned+s.Lost
}

// A failer is a test of package testing or rapid.
type failer interface {
	Helper()
	Fatal(args ...any)
}

// leased is a Limiter over a fake.
type leased struct {
	*Limiter
	fake *limitertest.Fake
}

// over returns a Limiter over a fake.
func over(tb failer, fake *limitertest.Fake, o Options) leased {
	tb.Helper()
	l, err := New(fake, &o)
	if err != nil {
		tb.Fatal(err)
	}
	return leased{l, fake}
}

// newLeased returns a Limiter over a fake of its own, which ends with the test. It
// has so many slots that two hot keys hardly ever share one, where only one would
// be leased.
func newLeased(tb testing.TB, o Options) leased {
	tb.Helper()
	o.MaxKeys = cmp.Or(o.MaxKeys, 5_000)
	l := over(tb, limitertest.NewFake(), o)
	tb.Cleanup(func() {
		if err := l.Close(); err != nil {
			tb.Error(err)
		}
	})
	return l
}

func (l leased) stats() leaseStats { return leaseStats(l.Stats().Lease) }

// left returns what the store has left of a key.
func (l leased) left(tb testing.TB, key string, limit algorithms.Limit) int64 {
	tb.Helper()
	return take(tb, l.fake.Memory, key, limit, 0).Remaining
}

// allow makes a call that must not fail.
func (l leased) allow(tb testing.TB, checks ...algorithms.Check) []algorithms.Check {
	tb.Helper()
	if err := l.Allow(tb.Context(), checks); err != nil {
		tb.Fatal(err)
	}
	return checks
}

// heat takes from a key 50 times, which make it hot.
func (l leased) heat(tb testing.TB, key string, limit algorithms.Limit) {
	tb.Helper()
	for range 50 {
		if d := take(tb, l, key, limit, 1); !d.Allowed {
			tb.Fatalf("%v: got %+v while it becomes hot", limit, d)
		}
	}
}

// warm takes from a key until 25 units are on lease, which is the first block with
// the default options. It returns how many units it has taken.
func (l leased) warm(tb testing.TB, key string, limit algorithms.Limit) int64 {
	tb.Helper()
	before := l.stats().Units
	l.heat(tb, key, limit)
	synctest.Wait()
	if got := l.stats().Units - before; got != 25 {
		tb.Fatalf("%v: got %d units on lease, want 25: what 500 per second take in 50 ms", limit, got)
	}
	return 50
}

// ofBlock reports whether a call asks for a block.
func ofBlock(checks []algorithms.Check) bool {
	return checks[0].Op == algorithms.Take && checks[0].Exact
}

// slowBlocks keeps the answers of blocks for a while.
func (l leased) slowBlocks(delay time.Duration) {
	l.fake.After(func(checks []algorithms.Check) {
		if ofBlock(checks) {
			time.Sleep(delay)
		}
	})
}

// take takes units from a key under the policy "default".
func take(tb testing.TB, l algorithms.Limiter, key string, limit algorithms.Limit, units int64) algorithms.Decision {
	tb.Helper()
	d, err := algorithms.AllowN(tb.Context(), l, key, limit, units)
	if err != nil {
		tb.Fatalf("%s: %v", key, err)
	}
	return d
}

// checkOf returns a take of units under the policy "default".
func checkOf(key string, limit algorithms.Limit, units int64) algorithms.Check {
	return algorithms.Check{Policy: "default", Key: key, Limit: limit, Cost: units}
}

// leasable returns a limit of each algorithm that is leased.
func leasable() []algorithms.Limit {
	return []algorithms.Limit{
		algorithms.TokenBucket(2_000, 24*time.Hour),
		algorithms.SlidingWindowCounter(2_000, 24*time.Hour),
		algorithms.FixedWindow(2_000, 24*time.Hour),
		algorithms.PerDay(2_000, nil),
	}
}
