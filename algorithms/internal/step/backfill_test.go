// Backfills: how much of them still counts, and how much fits.

package step

import (
	"testing"
	"time"
)

const noon = int64(1_763_726_400_000_000) // of a day of the epoch, so every window of this file begins

func minutes(n int64) int64 { return n * time.Minute.Microseconds() }

// A backfill counts in the window of its own instant.
func TestBackfillInstants(t *testing.T) {
	now := noon + minutes(30)
	perHour := func(row *Row) Limit { return NewLimit(row, 60, minutes(60)) }
	tests := map[string]struct {
		row  *Row
		ago  int64 // in minutes
		n, f int64 // of 10 units, on top of nothing
	}{
		"a bucket, now":                  {TokenBucket, 0, 10, 0},
		"a bucket, in part":              {TokenBucket, 4, 6, 0},
		"a bucket, drained":              {TokenBucket, 10, 0, 0},
		"a bucket, later":                {TokenBucket, -1, 10, 0},
		"a window, now":                  {FixedWindow, 0, 10, 0},
		"a window, at its beginning":     {FixedWindow, 30, 10, 0},
		"a window, before it":            {FixedWindow, 31, 0, 0},
		"a counter, now":                 {SlidingWindowCounter, 30, 10, 0},
		"a counter, the window before":   {SlidingWindowCounter, 31, 0, 10},
		"a counter, two windows before":  {SlidingWindowCounter, 91, 0, 0},
		"a log, now":                     {SlidingWindowLog, 0, 10, 0},
		"a log, a moment before it ends": {SlidingWindowLog, 59, 10, 0},
		"a log, a window ago":            {SlidingWindowLog, 60, 0, 0},
	}
	for name, tt := range tests {
		l := perHour(tt.row)
		s := l.Row.step.backfill(l.At(State{}, now), now, 10, now-minutes(tt.ago), &l)
		if s.N != tt.n || s.F != tt.f {
			t.Errorf("%s: got n %d, f %d, want %d, %d", name, s.N, s.F, tt.n, tt.f)
		}
	}
}

// A backfill fills what is free, at its own instant, and makes no debt.
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
			ask := func(op Op, cost, now, at int64) Figures {
				t.Helper()
				it := Item{Key: Key{Text: "k"}, Limit: l, Op: op, Cost: cost, Receipt: Receipt{At: at}}
				var c Call
				if err := c.Add(&it); err != nil {
					t.Fatal(err)
				}
				it.Held = Held{State: state, Exists: true}
				c.Decide(now, func(*Item) bool { return true })
				state = it.Held.State
				return it.Figures(now)
			}
			ask(Take, 2, noon, 0)
			if f := ask(Backfill, 1_000, noon, noon); f.Remaining != 0 {
				t.Errorf("got %d left, want none", f.Remaining)
			}
			f := ask(Take, 1, noon, 0)
			one := time.Duration(l.Window/l.Requests) * time.Microsecond
			if f.Allowed || l.Row.Refill == Continuously && f.RetryAfter > one+time.Microsecond {
				t.Errorf("got %+v, want a denial and no debt", f)
			}
			if l.Row.Refill == Continuously {
				return
			}
			// Units that were admitted two windows ago do not count in a window.
			later := noon + 4*l.Window
			ask(Backfill, 1, later, later-2*l.Window)
			if f := ask(Take, 0, later, 0); f.Remaining != l.Requests {
				t.Errorf("got %d left, want %d", f.Remaining, l.Requests)
			}
		})
	}
}
