// How long a Memory keeps a key that several limits charge.

package algorithms_test

import (
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/penstock-go/penstock/algorithms"
)

// A key that several limits of one call charge is kept for the slowest of them.
func TestMemoryKeepsAKeyForItsSlowestLimit(t *testing.T) {
	slow, fast := algorithms.TokenBucket(10, 10*time.Hour), algorithms.TokenBucket(10, time.Second)
	for _, order := range [][]algorithms.Limit{{slow, fast}, {fast, slow}} {
		synctest.Test(t, func(t *testing.T) {
			m := newMemory(t, nil)
			var call []algorithms.Check
			for _, l := range order {
				call = append(call, algorithms.Check{Policy: "default", Key: "usr=1", Limit: l, Cost: 1})
			}
			if err := m.Allow(t.Context(), call); err != nil {
				t.Fatal(err)
			}
			for i := range 100_000 { // and so many sweeps
				take(t, m, "usr="+strconv.Itoa(2+i), fast)
				if i%1_000 == 0 {
					time.Sleep(100 * time.Millisecond)
				}
			}
			check := []algorithms.Check{{Policy: "default", Key: "usr=1", Limit: slow}}
			if err := m.Allow(t.Context(), check); err != nil {
				t.Fatal(err)
			}
			if got := check[0].Decision.Remaining; got != 8 {
				t.Errorf("%v: got %d remaining, want 8: the key was forgotten", order, got)
			}
		})
	}
}
