// The size of blocks, how long they last, and what happens if there are none.

package lease

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
			l := newLeased(t, Options{Share: tt.share})
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

// A key's pace is measured from the take that made it hot, and blocks follow it.
func TestBlocksFollowThePace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limit := algorithms.FixedWindow(1_000_000, 24*time.Hour)
		l := newLeased(t, Options{})
		time.Sleep(time.Minute)
		l.warm(t, "usr=1", limit)
		time.Sleep(500 * time.Microsecond) // never takes at the instant at which the pace is measured
		for range 40 {                     // at twice the pace at which it became hot
			time.Sleep(time.Millisecond)
			take(t, l, "usr=1", limit, 1)
			synctest.Wait()
		}
		if got := l.stats(); got.Leased != 25+25+37 {
			t.Errorf("got %+v, want a third block that is half as large again", got)
		}
		// The key is looked at a nanosecond after it becomes hot.
		time.Sleep(9500*time.Microsecond - 1)
		before := l.stats()
		l.heat(t, "usr=2", limit)
		time.Sleep(2 * time.Nanosecond)
		for range 13 {
			take(t, l, "usr=2", limit, 1)
		}
		synctest.Wait()
		if got := l.stats().Leased - before.Leased; got < 25+12 || got > 25+25 {
			t.Errorf("got %d units for a new key, want two blocks", got)
		}
	})
}

// Blocks become small before the limit is used up, also if no take asks the wrapped
// limiter. The last units are not leased.
func TestBlocksTaper(t *testing.T) {
	const requests = 10_000
	for _, limit := range []algorithms.Limit{algorithms.FixedWindow(requests, 24*time.Hour), algorithms.TokenBucket(requests, 10*24*time.Hour)} {
		synctest.Test(t, func(t *testing.T) {
			l := newLeased(t, Options{})
			var left, leased int64 = requests, 0
			l.fake.After(func(checks []algorithms.Check) {
				c := &checks[0]
				if c.Op != algorithms.Take || !c.Decision.Allowed {
					return
				}
				if ofBlock(checks) {
					leased += c.Cost
					if most := left * left / (4 * requests); c.Cost > most {
						t.Errorf("%v: got a block of %d with %d left, want at most %d", limit, c.Cost, left, most)
					}
				}
				left = c.Decision.Remaining
			})
			for range requests {
				if !take(t, l, "usr=1", limit, 1).Allowed {
					break
				}
				time.Sleep(20 * time.Microsecond)
				synctest.Wait()
			}
			if leased < requests*9/10 || left > 0 {
				t.Errorf("%v: got %d units leased and %d left, want most of them leased, and all used", limit, leased, left)
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
			with, plain := newLeased(t, Options{}), limitertest.NewFake()
			plain.Memory = with.fake.Memory
			limiters, fakes := []algorithms.Limiter{with, plain}, []*limitertest.Fake{with.fake, plain}
			var last [2]atomic.Int64 // units of the last tenth, by limiter
			var waiting sync.WaitGroup
			for i, l := range limiters {
				fakes[i].Before(func(context.Context, []algorithms.Check) error {
					time.Sleep(time.Millisecond)
					return nil
				})
				fakes[i].After(func(checks []algorithms.Check) {
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
			leases, others := last[0].Load(), last[1].Load()
			t.Logf("%v: %d and %d", limit, leases, others)
			if leases == 0 || leases >= 2*others {
				t.Errorf("%v: callers with leases got %d of the last tenth, the others %d, want less than twice as much", limit, leases, others)
			}
			if got := with.stats(); got.Spent < requests/2 {
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
	l := newLeased(t, Options{})
	blocks := 0
	l.fake.Before(func(_ context.Context, checks []algorithms.Check) error {
		if ofBlock(checks) {
			if blocks++; blocks > 1 {
				checks[0].Cost = limit.Requests() + 1 // one is enough
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

// If no block is available, the wrapped limiter answers takes, and the next fetch
// waits for Hold. Only units of all processes are spent.
func TestRefusedBlocks(t *testing.T) {
	limit := algorithms.FixedWindow(2_000, 24*time.Hour)
	pass := func([]algorithms.Check) error { return nil }
	tests := []struct {
		name   string
		before func(checks []algorithms.Check) error
		after  func(checks []algorithms.Check)
		tries  int64 // for a block, in 150 ms
		want   leaseStats
	}{
		{"an error", func([]algorithms.Check) error { return errDown }, nil, 2, leaseStats{Blocks: 2, Lost: 1}},
		{"a denial", func(checks []algorithms.Check) error { checks[0].Cost = 2_001; return nil }, nil, 2, leaseStats{}},
		{"a local decision", pass, func(checks []algorithms.Check) { checks[0].Decision.Source = algorithms.Local }, 2, leaseStats{Blocks: 2, Returned: 1}},
		{"an undecided one", func(checks []algorithms.Check) error { checks[0].Cost = 0; return nil },
			func(checks []algorithms.Check) { checks[0].Decision = algorithms.Decision{Allowed: true} }, 2, leaseStats{}},
		{"too late", func([]algorithms.Check) error { time.Sleep(80 * time.Millisecond); return nil }, nil, 1, leaseStats{Blocks: 1, Returned: 1}},
	}
	for _, tt := range tests {
		synctest.Test(t, func(t *testing.T) {
			l := newLeased(t, Options{})
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
			if got := tries.Load(); got != tt.tries {
				t.Errorf("%s: got %d tries, want %d", tt.name, got, tt.tries)
			}
			time.Sleep(time.Second)
			got := l.stats()
			tt.want.Leased = got.Leased
			tt.want.Lost, tt.want.Returned = tt.want.Lost*got.Leased, tt.want.Returned*got.Leased
			if got != tt.want || (got.Blocks == 0) != (got.Leased == 0) {
				t.Errorf("%s: got %+v, want %+v", tt.name, got, tt.want)
			}
			if got := l.left(t, "usr=1", limit); got != 2_000-199 {
				t.Errorf("%s: got %d left, want %d", tt.name, got, 2_000-199)
			}
		})
	}
}

// If a limiter charges a block and its reply is lost, the block's units are lost.
// All units that the store has charged are accounted for, and none is spent twice.
func TestBlocksWithoutAReplyAreLost(t *testing.T) {
	for name, lose := range map[string]func(ctx context.Context) error{
		"an error":  func(context.Context) error { return errDown },
		"a timeout": func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() },
	} {
		synctest.Test(t, func(t *testing.T) {
			limit := algorithms.FixedWindow(2_000, 24*time.Hour)
			l := newLeased(t, Options{})
			l.fake.Before(func(ctx context.Context, checks []algorithms.Check) error {
				if !ofBlock(checks) {
					return nil
				}
				if err := l.fake.Memory.Allow(ctx, checks); err != nil || !checks[0].Decision.Allowed {
					t.Errorf("got %+v, %v for the block", checks[0].Decision, err)
				}
				return lose(ctx)
			})
			l.heat(t, "usr=1", limit)
			time.Sleep(2 * time.Second)
			if got, want := l.stats(), (leaseStats{Blocks: 1, Leased: 25, Lost: 25}); got != want {
				t.Errorf("%s: got %+v, want %+v", name, got, want)
			}
			if got := l.left(t, "usr=1", limit); got != 2_000-50-25 {
				t.Errorf("%s: got %d left, want all except the takes and the lost block", name, got)
			}
			l.fake.Before(nil)
			l.warm(t, "usr=1", limit) // the next one arrives
		})
	}
}
