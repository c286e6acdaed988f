// What "100 per minute" means for each algorithm, as the constructors say.

package algorithms_test

import (
	"context"
	"testing"
	"time"

	"github.com/penstock-go/penstock/algorithms"
)

// A client that asks as early as it can gets this many requests within 60 seconds.
// It begins just before a minute of the clock ends, with an unused key.
func TestHundredPerMinute(t *testing.T) {
	for name, tt := range map[string]struct {
		limit algorithms.Limit
		want  int
	}{
		"token bucket":           {algorithms.TokenBucket(100, time.Minute), 199},
		"token bucket, burst 10": {algorithms.TokenBucket(100, time.Minute).WithBurst(10), 109},
		"leaky bucket":           {algorithms.LeakyBucket(100, time.Minute), 199},
		"sliding window counter": {algorithms.SlidingWindowCounter(100, time.Minute), 199},
		"sliding window log":     {algorithms.SlidingWindowLog(100, time.Minute), 100},
		"fixed window":           {algorithms.FixedWindow(100, time.Minute), 200},
	} {
		clock := newClock()
		m := newMemory(t, &algorithms.MemoryOptions{Now: clock.now})
		const minute = int64(60_000_000)
		first, admitted := (epoch/minute+1)*minute-1, 0
		for now := first; now < first+minute; {
			clock.µs.Store(now)
			d, err := algorithms.Allow(context.Background(), m, "usr=1", tt.limit)
			if err != nil {
				t.Fatal(err)
			}
			if d.Allowed {
				admitted++
			}
			now += d.RetryAfter.Microseconds()
		}
		if admitted != tt.want {
			t.Errorf("%s: got %d requests in 60 s, want %d", name, admitted, tt.want)
		}
	}
}
