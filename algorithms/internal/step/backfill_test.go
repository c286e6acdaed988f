// Backfills: how much of them fits.

package step

import (
	"testing"
	"time"
)

const noon = int64(1_763_726_400_000_000) // of a day of the epoch, so every window of this file begins

// A backfill fills what is free now, and makes no debt.
func TestBackfillFits(t *testing.T) {
	second := time.Second.Microseconds()
	bucket, leaky := NewLimit(TokenBucket, 7, second), NewLimit(LeakyBucket, 3, second)
	bucket.Burst, leaky.Burst = 9, 5
	for _, l := range []Limit{
		bucket.Reduced(), leaky.Reduced(), NewLimit(SlidingWindowCounter, 12, second),
		NewLimit(SlidingWindowLog, 8, second), NewLimit(FixedWindow, 6, second),
	} {
		t.Run(l.Row.Name, func(t *testing.T) {
			var state State
			ask := func(op Op, cost, now int64) Figures {
				t.Helper()
				it := Item{Key: Key{Text: "k"}, Limit: l, Op: op, Cost: cost}
				var c Call
				if err := c.Add(&it); err != nil {
					t.Fatal(err)
				}
				it.Held = Held{State: state, Exists: true}
				c.Decide(now, func(*Item) bool { return true })
				state = it.Held.State
				return it.Figures(now)
			}
			ask(Take, 2, noon)
			if f := ask(Backfill, 1, noon); f.Remaining != l.Burst-3 {
				t.Errorf("got %d left, want %d", f.Remaining, l.Burst-3)
			}
			if f := ask(Backfill, 1_000, noon); f.Remaining != 0 {
				t.Errorf("got %d left, want none", f.Remaining)
			}
			f := ask(Take, 1, noon)
			one := time.Duration(l.Window/l.Requests) * time.Microsecond
			if f.Allowed || l.Row.Refill == Continuously && f.RetryAfter > one+time.Microsecond {
				t.Errorf("got %+v, want a denial and no debt", f)
			}
			if f := ask(Backfill, 1, noon+4*l.Window); f.Remaining != l.Burst-1 {
				t.Errorf("got %d left, want %d", f.Remaining, l.Burst-1)
			}
		})
	}
}
