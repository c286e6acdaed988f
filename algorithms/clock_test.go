package algorithms_test

import (
	"sync/atomic"
	"time"
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
