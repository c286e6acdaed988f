// The size of blocks, how long they last, and what happens if there are none.

package shared

import (
	"cmp"
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/algorithms/limitertest"
)

// A block has as many units as the key asks for in half of Hold, at most the
// share of the burst, and less of the rest as the limit is used up. There is no
// block for too few takes.
func TestBlocksAreOfTheRightSize(t *testing.T) {
	tests := []struct {
		limit algorithms.Limit
		share int
		cost  int64
		want  int64 // after fifty takes
	}{
		{algorithms.FixedWindow(2_000, 24*time.Hour), 0, 1, 25},
		{algorithms.FixedWindow(2_000, 24*time.Hour), 1, 1, 20},
		{algorithms.TokenBucket(2_000, 24*time.Hour).WithBurst(200), 0, 1, 20},
		{algorithms.FixedWindow(100, 24*time.Hour), 0, 1, 50 * 50 / 100 / 4},
		{algorithms.FixedWindow(88, 24*time.Hour), 0, 1, 38 * 38 / 88 / 4},
		{algorithms.FixedWindow(87, 24*time.Hour), 0, 1, 0}, // 37 * 37 / 87 / 4 is 3
		{algorithms.FixedWindow(2_000, 24*time.Hour), 0, 2, 50},
		{algorithms.FixedWindow(2_000, 24*time.Hour), 1, 5, 20},
		{algorithms.FixedWindow(2_000, 24*time.Hour), 1, 6, 0},
	}
	for _, tt := range tests {
		synctest.Test(t, func(t *testing.T) {
			l := newLeased(t, LeaseOptions{Share: tt.share})
			ask := func(times int64) {
				for range times {
					take(t, l, "usr=1", tt.limit, tt.cost)
				}
				synctest.Wait()
			}
			ask(50)
			if got := l.stats().Units; got != tt.want {
				t.Errorf("%v, share %d, cost %d: got %d on lease, want %d", tt.limit, tt.share, tt.cost, got, tt.want)
			}
			ask(tt.want / tt.cost * 6 / 10)
			share := tt.limit.Burst() * int64(cmp.Or(tt.share, 10)) / 100
			if got := l.stats().Units; got > share {
				t.Errorf("%v, share %d, cost %d: got %d on lease with the next block, want at most %d", tt.limit, tt.share, tt.cost, got, share)
			}
		})
	}
}

// If all callers wait for each round trip, those with leases receive less than
// twice as much of the last tenth of a limit as those without.
func TestLastUnitsAreShared(t *testing.T) {
	const requests, callers = 10_000, 16
	for _, limit := range []algorithms.Limit{
		algorithms.FixedWindow(requests, 24*time.Hour), algorithms.SlidingWindowCounter(requests, 24*time.Hour),
		algorithms.TokenBucket(requests, 24*time.Hour),
	} {
		synctest.Test(t, func(t *testing.T) {
			limiters := []leased{
				newLeased(t, LeaseOptions{}),
				coverFake(limitertest.NewFake(), Options{DenyCacheKeys: DenyCacheOff}),
			}
			limiters[1].fake.Memory = limiters[0].fake.Memory
			var last [2]atomic.Int64 // units of the last tenth, by limiter
			var waiting sync.WaitGroup
			for i, l := range limiters {
				l.fake.Before(func(context.Context, []algorithms.Check) error {
					time.Sleep(time.Millisecond)
					return nil
				})
				l.fake.After(func(checks []algorithms.Check) {
					if c := checks[0]; c.Op == algorithms.Take && c.Decision.Allowed && c.Decision.Remaining < requests/10 {
						last[i].Add(c.Cost)
					}
				})
				for range callers {
					waiting.Go(func() {
						for take(t, l, "usr=1", limit, 1).Allowed {
						}
					})
				}
			}
			waiting.Wait()
			with, without := last[0].Load(), last[1].Load()
			t.Logf("%v: %d and %d", limit, with, without)
			if with == 0 || with >= 2*without {
				t.Errorf("%v: callers with leases got %d of the last tenth, those without %d, want less than twice as much", limit, with, without)
			}
			if got := limiters[0].stats(); got.Spent < requests/2 {
				t.Errorf("%v: got %+v, want most units spent from leases", limit, got)
			}
		})
	}
}

// A block of a window is spent in that window only, by the store's clock, even if
// its answer was long under way.
func TestBlocksEndWithTheirWindow(t *testing.T) {
	kolkata, err := time.LoadLocation("Asia/Kolkata")
	if err != nil {
		t.Fatal(err)
	}
	for limit, turn := range map[algorithms.Limit]time.Duration{ // since midnight in UTC
		algorithms.FixedWindow(2_000, time.Second):          time.Second,
		algorithms.SlidingWindowCounter(2_000, time.Second): time.Second,
		algorithms.PerDay(2_000, kolkata):                   18*time.Hour + 30*time.Minute,
	} {
		synctest.Test(t, func(t *testing.T) { testBlockEndsWithItsWindow(t, limit, turn) })
	}
}

func testBlockEndsWithItsWindow(t *testing.T, limit algorithms.Limit, turn time.Duration) {
	l := newLeased(t, LeaseOptions{})
	blocks := 0
	l.fake.Before(func(_ context.Context, checks []algorithms.Check) error {
		if ofBlock(checks) {
			if blocks++; blocks > 1 {
				return errDown // one is enough
			}
			time.Sleep(5 * time.Millisecond)
		}
		return nil
	})
	l.slowBlocks(5 * time.Millisecond)
	time.Sleep(turn - 30*time.Millisecond)
	l.heat(t, "usr=1", limit)
	time.Sleep(10*time.Millisecond + 1) // 20 ms are left, 15 of them since it was asked
	l.fake.Drain()
	for range 5 {
		take(t, l, "usr=1", limit, 1)
	}
	time.Sleep(14*time.Millisecond - 2)
	take(t, l, "usr=1", limit, 1)
	if asked := l.fake.Drain(); len(asked) != 0 {
		t.Errorf("%v in the window: got %d checks below, want none", limit, len(asked))
	}
	time.Sleep(time.Millisecond + 1)
	take(t, l, "usr=1", limit, 1)
	if asked := l.fake.Drain(); len(asked) == 0 {
		t.Errorf("%v: a unit was spent when the window may have ended", limit)
	}
	time.Sleep(100 * time.Millisecond)
	want := leaseStats{Blocks: 1, Leased: 25, Spent: 6, Lost: 19}
	if !limit.Algorithm().Aligned() { // unspent units weigh on the next window
		want.Lost, want.Returned = 0, 19
	}
	if got := l.stats(); got != want {
		t.Errorf("%v: got %+v, want %+v", limit, got, want)
	}
}

// If no block is available, takes pass to the limiter below, and the next fetch
// waits for Hold.
func TestRefusedBlocks(t *testing.T) {
	limit := algorithms.FixedWindow(2_000, 24*time.Hour)
	pass := func([]algorithms.Check) error { return nil }
	tests := []struct {
		name   string
		before func(checks []algorithms.Check) error
		after  func(checks []algorithms.Check)
		tries  int64 // for a block, in 150 ms
	}{
		{"an error", func([]algorithms.Check) error { return errDown }, nil, 2},
		{"a denial", func(checks []algorithms.Check) error { checks[0].Cost = 2_001; return nil }, nil, 2},
		{"a local decision", pass, func(checks []algorithms.Check) { checks[0].Decision.Source = algorithms.Local }, 2},
		{"too late", func([]algorithms.Check) error { time.Sleep(80 * time.Millisecond); return nil }, nil, 1},
	}
	for _, tt := range tests {
		synctest.Test(t, func(t *testing.T) {
			l := newLeased(t, LeaseOptions{})
			var tries atomic.Int64
			l.fake.Before(func(_ context.Context, checks []algorithms.Check) error {
				if !ofBlock(checks) {
					return nil
				}
				tries.Add(1)
				return tt.before(checks)
			})
			l.fake.After(func(checks []algorithms.Check) {
				if tt.after != nil && ofBlock(checks) {
					tt.after(checks)
				}
			})
			for range 149 + 50 { // the first 50 make it hot
				take(t, l, "usr=1", limit, 1)
				synctest.Wait()
				time.Sleep(time.Millisecond)
			}
			if got := l.stats(); tries.Load() != tt.tries || got.Spent != 0 {
				t.Errorf("%s: got %d tries and %+v, want %d tries, nothing spent", tt.name, tries.Load(), got, tt.tries)
			}
			time.Sleep(time.Second)
			if got := l.left(t, "usr=1", limit); got != 2_000-199 {
				t.Errorf("%s: got %d left, want %d", tt.name, got, 2_000-199)
			}
		})
	}
}
