// Leases and settlements, changed limits, and remembered denials.

package lease

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/algorithms/shared"
	"github.com/penstock-go/penstock/internal/redistest"
)

// A changed limit acts at once on this instance: the unspent units of the old
// lease go back under the new limit.
func TestLeaseOfAChangedLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLeased(t, Options{})
		before, after := algorithms.FixedWindow(2_000, 24*time.Hour), algorithms.FixedWindow(60, 24*time.Hour)
		l.warm(t, "usr=1", before)
		if d := take(t, l, "usr=1", after, 1); d.Allowed {
			t.Errorf("got %+v, want it denied: 75 of 60 are taken", d)
		}
		l.fake.Drain()
		time.Sleep(25 * time.Millisecond)
		synctest.Wait()
		asked := l.fake.Drain()
		if len(asked) != 1 || asked[0].Limit != after || asked[0].Cost != 25 || asked[0].Op != algorithms.Return {
			t.Errorf("got %+v below, want 25 returned under the new limit", asked)
		}
		if got := l.left(t, "usr=1", after); got != 10 {
			t.Errorf("got %d left, want 10: 50 of 60 are used", got)
		}
	})
}

// After a Reset, units that were leased before it do not count, also if their
// block was still under way.
func TestLeaseOfAResetKey(t *testing.T) {
	for name, delay := range map[string]time.Duration{"on lease": 0, "under way": 10 * time.Millisecond} {
		synctest.Test(t, func(t *testing.T) {
			limit := algorithms.FixedWindow(2_000, 24*time.Hour)
			l := newLeased(t, Options{})
			l.slowBlocks(delay)
			l.heat(t, "usr=1", limit)
			synctest.Wait()
			l.allow(t, algorithms.Check{Policy: "default", Key: "usr=1", Limit: limit, Op: algorithms.Reset})
			time.Sleep(200 * time.Millisecond)
			if got, want := l.stats(), (leaseStats{Blocks: 1, Leased: 25, Lost: 25}); got != want {
				t.Errorf("%s: got %+v, want %+v", name, got, want)
			}
			if got := l.left(t, "usr=1", limit); got != 2_000 {
				t.Errorf("%s: got %d left, want all", name, got)
			}
		})
	}
}

// A take from a lease is returned as any other, and never credits more.
func TestReturnsOfLeasedTakes(t *testing.T) {
	for _, limit := range leasable() {
		synctest.Test(t, func(t *testing.T) {
			l := newLeased(t, Options{})
			l.warm(t, "usr=1", limit)
			call := l.allow(t, checkOf("usr=1", limit, 10))
			left := l.left(t, "usr=1", limit)
			call[0].Op, call[0].Cost = algorithms.Return, 4
			for _, want := range []int64{4, 8, 10, 10} {
				l.allow(t, call...)
				if got := l.left(t, "usr=1", limit) - left; got != want {
					t.Errorf("%v: got %d credited, want %d", limit, got, want)
				}
			}
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
			if got := l.left(t, "usr=1", limit); got != 2_000-50 {
				t.Errorf("%v: got %d left, want %d: all went back", limit, got, 2_000-50)
			}
		})
	}
}

// The wrapped limiter may remember a denial. It ends when units go back.
func TestReturnedUnitsEndRememberedDenials(t *testing.T) {
	limiter := newShared(t, redistest.Start(t).Client(), shared.Options{})
	l, err := New(limiter, &Options{HotAt: 10, Hold: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	limit := algorithms.FixedWindow(2_000, 365*24*time.Hour)
	rest := limit.Requests()
	for limiter.Stats().DenyCache.Hits == 0 {
		if l.Stats().Lease.Units == 0 {
			if take(t, l, "usr=1", limit, 1).Allowed {
				rest--
			}
			continue
		}
		all := []algorithms.Check{checkOf("usr=1", limit, rest)}
		if err := limiter.Allow(t.Context(), all); err != nil {
			t.Fatal(err)
		}
		if all[0].Decision.Allowed { // the machine is slow: all units have come back
			all[0].Op = algorithms.Return
			if err := limiter.Allow(t.Context(), all); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if d := take(t, l, "usr=1", limit, rest); !d.Allowed {
		t.Errorf("got %+v, though the units on lease have come back", d)
	}
}
