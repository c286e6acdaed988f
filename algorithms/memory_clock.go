// The clock of a Memory: the process's monotonic clock, which follows the wall
// clock once a second. Reading it takes half as long as time.Now, which reads
// both clocks.

package algorithms

import (
	"fmt"
	"sync/atomic"
	"time"

	"github.com/penstock-go/penstock/algorithms/internal/step"
)

type wallClock struct {
	start time.Time
	base  atomic.Int64 // µs: the instant of start, by the wall clock as it is now
	due   atomic.Int64 // ns since start: when to read the wall clock again
}

const (
	// followEvery is how often the wall clock is read.
	followEvery = time.Second

	// followAbove (µs): follow the wall clock only if it differs by more. A
	// smaller difference is the time between two reads.
	followAbove = 1_000
)

func newWallClock() *wallClock {
	c := &wallClock{start: time.Now()}
	c.base.Store(c.start.UnixMicro())
	c.due.Store(int64(followEvery))
	return c
}

// now returns the instant in µs. One caller in a second reads the wall clock.
func (c *wallClock) now() int64 {
	passed := time.Since(c.start)
	if int64(passed) >= c.due.Load() {
		c.look(passed)
	}
	return c.base.Load() + passed.Microseconds()
}

// look reads the wall clock, unless another caller is reading it.
func (c *wallClock) look(passed time.Duration) {
	if due := c.due.Load(); int64(passed) >= due && c.due.CompareAndSwap(due, int64(passed+followEvery)) {
		c.follow(time.Now())
	}
}

// follow sets the clock by the wall clock, which says now.
func (c *wallClock) follow(now time.Time) {
	base := now.UnixMicro() - now.Sub(c.start).Microseconds()
	if d := base - c.base.Load(); d < -followAbove || d > followAbove {
		c.base.Store(base)
	}
}

// representable reports whether an instant lies in the years in which all
// arithmetic is exact.
func representable(now int64) bool { return now >= 1 && now <= step.MaxExact-1<<46 }

func errClock(now int64) error {
	return fmt.Errorf("algorithms: %w: the clock says %v; it must be after 1970 and before 2253", ErrInvalid, time.UnixMicro(now).UTC())
}
