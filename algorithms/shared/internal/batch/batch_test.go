// How much one batch holds.

package batch

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/internal/redistest"
)

// Calls that waited travel in batches of the most weight. What is heavier travels alone.
func TestBatchesAreBoundedByWeight(t *testing.T) {
	takes := func(limit algorithms.Limit, checks int, key string) func(i int) []algorithms.Check {
		return func(i int) (call []algorithms.Check) {
			for j := range checks {
				call = append(call, algorithms.Check{Policy: "p", Key: fmt.Sprint(key, i, "-", j), Limit: limit, Cost: 1})
			}
			return call
		}
	}
	bucket := algorithms.TokenBucket(100, time.Hour)
	server := redistest.Start(t)
	if _, err := takeOne(t.Context(), newLane(server.Client(), Options{})); err != nil { // the server knows the script
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		calls int
		call  func(i int) []algorithms.Check
		want  uint64 // batches
	}{
		"takes":                {2 * maxBatchWeight, takes(bucket, 1, "usr="), 2},
		"one take more":        {2*maxBatchWeight + 1, takes(bucket, 1, "usr="), 3},
		"logs of 900":          {4, takes(algorithms.SlidingWindowLog(900, time.Hour), 1, "usr="), 4},
		"calls of many takes":  {3, takes(bucket, 2*maxBatchWeight, "usr="), 3},
		"calls of three takes": {maxBatchWeight, takes(bucket, 3, "usr="), 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := redistest.Script(server.Client(), redistest.Hold())
			r := newLane(c, Options{InFlight: 1})
			var callers sync.WaitGroup
			ask := func(checks []algorithms.Check) {
				callers.Go(func() {
					if err := r.Submit(context.Background(), groupOf(t, name, checks...)); err != nil {
						t.Error(err)
					}
				})
			}
			ask(takes(bucket, 1, "first")(0))
			c.UntilHeld(t, 1)
			for i := range tt.calls {
				ask(tt.call(i))
			}
			redistest.Until(t, "all other calls are queued", func() bool { return r.queued() == tt.calls })
			before := r.scripts()
			c.Open()
			callers.Wait()
			if got := r.scripts() - before; got != tt.want {
				t.Errorf("%d calls travelled in %d batches, want %d", tt.calls, got, tt.want)
			}
		})
	}
}
