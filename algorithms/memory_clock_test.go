package algorithms

import (
	"testing"
	"testing/synctest"
	"time"
)

// A Memory goes by the monotonic clock, and follows a step of the wall clock
// when it sweeps next.
func TestMemoryFollowsTheWallClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := Must(NewMemory(nil))
		defer m.Close()
		for _, step := range []time.Duration{time.Hour, -time.Hour, 0} {
			m.wall.base.Add(step.Microseconds()) // as if the wall clock had stepped the other way
			if got, want := m.now(), time.Now().Add(step).UnixMicro(); got != want {
				t.Fatalf("a step of %v: the clock says %d, want %d", step, got, want)
			}
			time.Sleep(sweepEvery + time.Millisecond)
			if got, want := m.now(), time.Now().UnixMicro(); got != want {
				t.Errorf("a step of %v, swept: the clock says %d, want %d", step, got, want)
			}
		}
	})
}

// What differs by less than a step is an error of reading, and changes nothing:
// time would not pass evenly.
func TestWallClockIgnoresJitter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newWallClock()
		for _, jitter := range []int64{setAbove, -setAbove} {
			c.base.Store(c.start.UnixMicro() + jitter)
			c.set(time.Now())
			if got, want := c.now(), time.Now().UnixMicro()+jitter; got != want {
				t.Errorf("off by %d µs and set: the clock says %d, want %d", jitter, got, want)
			}
		}
	})
}
