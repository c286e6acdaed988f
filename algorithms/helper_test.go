// What the tests of this package share.

package algorithms_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/penstock-go/penstock/algorithms"
)

// A fakeClock stands still until it is moved. Limiters read it at any time.
type fakeClock struct{ µs atomic.Int64 }

// epoch is the instant that worked examples begin at: half past a minute.
const epoch = 1_763_729_430_000_000

func newClock() *fakeClock {
	c := new(fakeClock)
	c.µs.Store(epoch)
	return c
}

func (c *fakeClock) now() time.Time { return time.UnixMicro(c.µs.Load()) }

func (c *fakeClock) add(d time.Duration) { c.µs.Add(d.Microseconds()) }

func newMemory(t *testing.T, o *algorithms.MemoryOptions) *algorithms.Memory {
	t.Helper()
	return algorithms.NewMemory(o)
}

// take takes one unit and returns the decision.
func take(t *testing.T, l algorithms.Limiter, key string, limit algorithms.Limit) algorithms.Decision {
	t.Helper()
	d, err := algorithms.Allow(context.Background(), l, key, limit)
	if err != nil {
		t.Fatalf("Allow(%q, %v): %v", key, limit, err)
	}
	return d
}

// plenty admits whatever a benchmark asks.
func plenty() []algorithms.Limit {
	return []algorithms.Limit{
		algorithms.TokenBucket(1_000_000_000, time.Second),
		algorithms.LeakyBucket(1_000_000_000, time.Second),
		algorithms.SlidingWindowCounter(1_000_000_000, time.Second),
		algorithms.SlidingWindowLog(10_000, time.Millisecond),
		algorithms.FixedWindow(1_000_000_000, time.Second),
	}
}

func location(name string) *time.Location {
	zone, err := time.LoadLocation(name)
	if err != nil {
		panic(err)
	}
	return zone
}
