// Receipts that no limiter of this module issued.

package algorithms_test

import (
	"context"
	"errors"
	"math"
	"testing"
	"time"

	"github.com/penstock-go/penstock/algorithms"
)

// A receipt of NewReceipt describes the state of another module's limiter. Memory would credit units that it never charged.
func TestMemoryRejectsReceiptsOfOtherModules(t *testing.T) {
	for _, limit := range append(plenty(), algorithms.PerMonth(10, time.UTC), algorithms.Concurrent(10, time.Minute), algorithms.Nobody()) {
		for _, op := range []algorithms.Op{algorithms.Return, algorithms.Renew} {
			for _, units := range []int64{1, math.MaxInt64, -1, math.MinInt64} {
				m := newMemory(t, &algorithms.MemoryOptions{Now: newClock().now})
				before := take(t, m, "usr=1", limit)
				c := algorithms.Check{Policy: "default", Key: "usr=1", Limit: limit, Cost: 1, Op: op}
				c.Decision.Receipt = algorithms.NewReceipt(units, epoch, 1, 0)
				if err := m.Allow(context.Background(), []algorithms.Check{c}); !errors.Is(err, algorithms.ErrInvalid) {
					t.Errorf("%v, %v of %d units: got %v, want ErrInvalid", limit, op, units, err)
				}
				// The key is as it was: a check of cost 0 sees what the take left.
				if after, err := algorithms.AllowN(context.Background(), m, "usr=1", limit, 0); err != nil || after.Remaining != before.Remaining {
					t.Errorf("%v, %v of %d units: got %d remaining and error %v, want %d", limit, op, units, after.Remaining, err, before.Remaining)
				}
			}
		}
	}
}

// A receipt without units gives nothing back, whoever issued it: callers return what is left of receipts without a look.
func TestMemoryIgnoresReceiptsWithoutUnits(t *testing.T) {
	for _, limit := range append(plenty(), algorithms.PerMonth(10, time.UTC), algorithms.Concurrent(10, time.Minute), algorithms.Nobody()) {
		for _, op := range []algorithms.Op{algorithms.Return, algorithms.Renew} {
			m := newMemory(t, &algorithms.MemoryOptions{Now: newClock().now})
			before := take(t, m, "usr=1", limit)
			c := algorithms.Check{Policy: "default", Key: "usr=1", Limit: limit, Cost: 1, Op: op}
			c.Decision.Receipt = algorithms.NewReceipt(0, epoch, 1, 0)
			if err := m.Allow(context.Background(), []algorithms.Check{c}); err != nil {
				t.Errorf("%v, %v: got %v, want no error", limit, op, err)
			}
			if after, err := algorithms.AllowN(context.Background(), m, "usr=1", limit, 0); err != nil || after.Remaining != before.Remaining {
				t.Errorf("%v, %v: got %d remaining and error %v, want %d", limit, op, after.Remaining, err, before.Remaining)
			}
		}
	}
}
