// The clock of a Memory.

package algorithms

import (
	"testing"
	"testing/synctest"
	"time"
)

// A Memory follows the monotonic clock. The first call after a second follows a
// step of the wall clock.
func TestMemoryFollowsTheWallClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := NewMemory(nil)
		for _, step := range []time.Duration{time.Hour, -time.Hour, 0} {
			m.wall.base.Add(step.Microseconds()) // as if the wall clock had stepped the other way
			if got, want := m.now(), time.Now().Add(step).UnixMicro(); got != want {
				t.Fatalf("a step of %v: the clock says %d, want %d", step, got, want)
			}
			time.Sleep(followEvery)
			if got, want := m.now(), time.Now().UnixMicro(); got != want {
				t.Errorf("a step of %v, a second later: the clock says %d, want %d", step, got, want)
			}
		}
	})
}

// A small difference is the time between two reads, and changes nothing:
// otherwise time would not pass evenly.
func TestWallClockIgnoresJitter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newWallClock()
		for _, jitter := range []int64{followAbove, -followAbove} {
			c.base.Store(c.start.UnixMicro() + jitter)
			c.follow(time.Now())
			if got, want := c.now(), time.Now().UnixMicro()+jitter; got != want {
				t.Errorf("off by %d µs: the clock says %d, want %d", jitter, got, want)
			}
		}
	})
}
