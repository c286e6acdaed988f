// Lone takes, which Memory decides without a Call.

package algorithms_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/penstock-go/penstock/algorithms"
)

// A lone take must be decided like a take beside another check.
func TestLoneTakesAreDecidedAsOthers(t *testing.T) {
	t.Parallel()
	limits := []algorithms.Limit{
		algorithms.TokenBucket(10, time.Second), algorithms.TokenBucket(7, time.Second).WithBurst(3),
		algorithms.TokenBucket(1, time.Minute), algorithms.TokenBucket(1_000_000_000, time.Second).WithBurst(1),
		algorithms.LeakyBucket(10, time.Second), algorithms.FixedWindow(5, time.Second),
		algorithms.SlidingWindowCounter(5, time.Second), algorithms.SlidingWindowLog(5, time.Second),
		algorithms.PerDay(50, nil), algorithms.Nobody(),
	}
	keys := []string{"usr=1", "usr=2", "key=" + strings.Repeat("x", 80), "key=" + strings.Repeat("y", 200)}
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 1))
		clock := newClock()
		o := &algorithms.MemoryOptions{Now: clock.now, MaxKeys: 1_000} // one shard, which one sweep looks at
		alone, beside := newMemory(t, o), newMemory(t, o)
		for i := range 100 {
			clock.add(time.Duration(random.Int64N(400)-50) * time.Millisecond)
			if random.IntN(20) == 0 {
				clock.add(-2 * time.Second)
			}
			c := algorithms.Check{
				Policy: "orders", Key: keys[random.IntN(len(keys))], Limit: limits[random.IntN(len(limits))],
				Cost: random.Int64N(5),
			}
			op := algorithms.Take
			if random.IntN(8) == 0 {
				op = algorithms.Force // settlements go one way only; what they leave is read by both
			}
			c.Op = op
			one, two := []algorithms.Check{c}, []algorithms.Check{c, {Policy: "others", Key: "usr=1", Limit: c.Limit, Op: op}}
			for _, err := range []error{
				alone.Allow(context.Background(), one), beside.Allow(context.Background(), two),
			} {
				if err != nil {
					t.Fatal(err)
				}
			}
			if one[0].Decision != two[0].Decision {
				t.Fatalf("seed %d, call %d, %v of %d: got\n%+v alone, and in company\n%+v", seed, i, c.Limit, c.Cost, one[0].Decision, two[0].Decision)
			}
		}
		clock.add(time.Second)
		for _, m := range []*algorithms.Memory{alone, beside} {
			take(t, m, "usr=1", algorithms.Nobody()) // sweeps
		}
		if a, b := fmt.Sprint(alone.Stats().Memory.Keys), fmt.Sprint(beside.Stats().Memory.Keys); a != b {
			t.Fatalf("seed %d: got %v keys alone, and %v in company", seed, a, b)
		}
	}
}
