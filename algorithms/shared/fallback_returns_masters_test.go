// Kept Returns of several masters.

package shared

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/algorithms/shared/internal/trouble"
)

// Kept Returns of a master that is bypassed, however many, hold up no Return of another.
func TestBypassedMasterHoldsUpNoReturns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, l := newWorld(t, nil), algorithms.Concurrent(10, 10*time.Hour)
		taken := w.take("usr=1", l, 5)
		w.shared.bypasses = func(c *call) bool { return c.items[0].Key.Policy == "bypassed" }
		for i := range 5_000 {
			c, err := newCall([]algorithms.Check{{
				Policy: "bypassed", Key: fmt.Sprint("usr=", i), Limit: l, Op: algorithms.Return, Cost: 1, Decision: taken,
			}})
			if err != nil {
				t.Fatal(err)
			}
			w.fallback.ledger.keep(&c.items[0], trouble.ErrOpen)
		}
		w.shared.fails(errRefused)
		if _, err := w.settle(algorithms.Check{Key: "usr=1", Limit: l, Op: algorithms.Return, Cost: 5, Decision: taken}); err != nil {
			t.Fatal(err)
		}
		w.shared.fails(nil)
		time.Sleep(2 * time.Second)
		if got := used(t, w.shared.store, "usr=1", l); got != 0 {
			t.Errorf("the primary holds %d, want none", got)
		}
		if n := w.stats().Returns; n != 5_000 {
			t.Errorf("%d Returns are kept, want those of the other master", n)
		}
	})
}
