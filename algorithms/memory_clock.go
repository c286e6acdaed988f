package algorithms

import (
	"fmt"
	"sync/atomic"
	"time"
)

// A wallClock is the process's monotonic clock, set by the wall clock from time
// to time. A step of the wall clock is seen when it is set next, and reading it
// takes half as long as time.Now, which reads both.
type wallClock struct {
	start time.Time
	base  atomic.Int64 // µs: the instant of start by the wall clock as it is now
}

// setAbove is by how many µs the wall clock must differ to be followed: both
// are slewed alike, and smaller differences are those of reading them.
const setAbove = 1_000

func newWallClock() *wallClock {
	c := &wallClock{start: time.Now()}
	c.base.Store(c.start.UnixMicro())
	return c
}

// now returns the instant in µs.
func (c *wallClock) now() int64 {
	return c.base.Load() + time.Since(c.start).Microseconds()
}

// set follows the wall clock, which says now.
func (c *wallClock) set(now time.Time) {
	base := now.UnixMicro() - now.Sub(c.start).Microseconds()
	if d := base - c.base.Load(); d < -setAbove || d > setAbove {
		c.base.Store(base)
	}
}

// clock returns an instant in µs, and an error outside of the years in which
// all arithmetic is exact.
func clock(t time.Time) (int64, error) {
	now := t.UnixMicro()
	if !representable(now) {
		return 0, errClock(now)
	}
	return now, nil
}

func representable(now int64) bool { return now >= 1 && now <= maxExact-1<<46 }

func errClock(now int64) error {
	return fmt.Errorf("algorithms: the clock says %v; it must be after 1970 and before 2253", time.UnixMicro(now).UTC())
}
