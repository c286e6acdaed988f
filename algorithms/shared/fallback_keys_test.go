// Keys of limits that differ only in their algorithm.

package shared

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/penstock-go/penstock/algorithms"
)

// Limits of one policy and key count separately if their algorithms differ,
// also while all of them are buckets: each admits its share, in one call as in
// calls of their own.
func TestFallbackCountsAlgorithmsApart(t *testing.T) {
	for _, together := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, &Options{Instances: 2})
			w.trip()
			limits := everyAlgorithm(20, time.Hour)
			admitted := 0
			for range 20 {
				var checks []algorithms.Check
				for _, l := range limits {
					checks = append(checks, algorithms.Check{Policy: "orders", Key: "usr=1", Limit: l, Cost: 1})
				}
				if !together {
					for i := range checks {
						if err := w.Allow(context.Background(), checks[i:i+1]); err != nil {
							t.Fatal(err)
						}
					}
				} else if err := w.Allow(context.Background(), checks); err != nil {
					t.Fatal(err)
				}
				for _, c := range checks {
					if c.Decision.Allowed {
						admitted++
					}
				}
			}
			if want := 10 * len(limits); admitted != want {
				t.Errorf("together %v: got %d takes admitted, want %d, half of each limit", together, admitted, want)
			}
		})
	}
}

// A trial of another algorithm has a key of its own, also while both are buckets.
func TestFallbackTriesAnotherAlgorithm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil)
		checks := []algorithms.Check{
			{Policy: "orders", Key: "usr=1", Limit: algorithms.TokenBucket(20, time.Hour), Cost: 1},
			{Policy: "orders", Key: "usr=1", Limit: algorithms.SlidingWindowLog(20, time.Hour), Cost: 1, Op: algorithms.Trial},
		}
		for _, when := range []string{"shared", "local"} {
			if err := w.Allow(context.Background(), checks); err != nil {
				t.Fatalf("%s: %v", when, err)
			}
			for _, c := range checks {
				if !c.Decision.Allowed || c.Decision.Remaining != 19 || c.Decision.Source.String() != when {
					t.Errorf("%s: %v: got %+v, want it allowed with 19 remaining", when, c.Op, c.Decision)
				}
			}
			w.trip()
		}
	})
}
