// Leases and settlements, changed limits, and remembered denials.

package shared

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/algorithms/limitertest"
)

// A changed limit acts at once on this instance: the unspent units of the old
// lease go back under the new limit.
func TestLeaseOfAChangedLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLeased(t, LeaseOptions{})
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
			l := newLeased(t, LeaseOptions{})
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
			l := newLeased(t, LeaseOptions{})
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

// newCovered returns a limiter with leases and a deny cache.
func newCovered(t *testing.T) leased {
	l := coverFake(limitertest.NewFake(), Options{Lease: &LeaseOptions{}})
	t.Cleanup(func() { _ = l.Close() })
	return l
}

// A remembered denial ends when units are leased, or go back.
func TestLeasesEndRememberedDenials(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limit := algorithms.FixedWindow(2_000, 24*time.Hour)
		l := newCovered(t)
		l.warm(t, "usr=1", limit)
		for range 2 {
			if d := take(t, l, "usr=1", limit, 1_950); d.Allowed {
				t.Errorf("got %+v, though 25 units are on lease", d)
			}
		}
		if got := l.hits(); got != 1 {
			t.Errorf("got %d denials from memory, want the second", got)
		}
		time.Sleep(100 * time.Millisecond)
		synctest.Wait()
		if d := take(t, l, "usr=1", limit, 1_950); !d.Allowed {
			t.Errorf("got %+v, though the units on lease have come back", d)
		}
	})
}

// A denial that is remembered while a block is under way ends when it arrives.
func TestBlocksUnderWayEndRememberedDenials(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limit := algorithms.FixedWindow(2_000, 24*time.Hour)
		l := newCovered(t)
		l.slowBlocks(10 * time.Millisecond)
		l.heat(t, "usr=1", limit)
		synctest.Wait()
		if d := take(t, l, "usr=1", limit, 1_925); !d.Allowed {
			t.Fatalf("got %+v, want the rest of the limit", d)
		}
		for range 2 {
			if d := take(t, l, "usr=1", limit, 1); d.Allowed {
				t.Errorf("got %+v before the block is there", d)
			}
		}
		if got := l.hits(); got != 1 {
			t.Errorf("got %d denials from memory, want the second", got)
		}
		time.Sleep(10 * time.Millisecond)
		synctest.Wait()
		if d := take(t, l, "usr=1", limit, 1); !d.Allowed {
			t.Errorf("got %+v, want a unit of the block", d)
		}
	})
}
