// Receipts that no limiter of this module issued.

package shared

import (
	"errors"
	"math"
	"testing"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/internal/redistest"
)

// A receipt of NewReceipt describes the state of another module's limiter. A limiter would credit units that it never
// charged, in Redis or in its local part.
func TestLimitersRejectReceiptsOfOtherModules(t *testing.T) {
	t.Parallel()
	client := redistest.Start(t).Client()
	limiters := map[string]algorithms.Limiter{"redis": newRedis(t, client, nil), "all layers": must(t, client, nil)}
	limits := []algorithms.Limit{
		algorithms.TokenBucket(10, time.Minute), algorithms.LeakyBucket(10, time.Minute), algorithms.SlidingWindowCounter(10, time.Minute),
		algorithms.SlidingWindowLog(10, time.Minute), algorithms.FixedWindow(10, time.Minute), algorithms.PerMonth(10, time.UTC),
		algorithms.Concurrent(10, time.Minute), algorithms.Nobody(),
	}
	for name, l := range limiters {
		for _, limit := range limits {
			for _, op := range []algorithms.Op{algorithms.Return, algorithms.Renew} {
				for _, units := range []int64{1, math.MaxInt64, -1, math.MinInt64} {
					c := algorithms.Check{Policy: "p", Key: "usr=1", Limit: limit, Cost: 1, Op: op}
					c.Decision.Receipt = algorithms.NewReceipt(units, 1, 1, 0)
					if err := l.Allow(t.Context(), []algorithms.Check{c}); !errors.Is(err, algorithms.ErrInvalid) {
						t.Errorf("%s, %v, %v of %d units: got %v, want ErrInvalid", name, limit, op, units, err)
					}
				}
			}
		}
	}
	if keys := client.Keys(t.Context(), "*usr=1*").Val(); len(keys) > 0 {
		t.Errorf("got the keys %q stored, want none", keys)
	}
}
