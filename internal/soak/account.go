package main

import (
	"fmt"
	"sync/atomic"
	"time"

	"github.com/penstock-go/penstock/algorithms"
)

// An account is what one key was admitted in one act, in units.
type account struct {
	policy, key string
	limit       algorithms.Limit
	fail        algorithms.FailureMode

	shared, local atomic.Int64 // without what was, perhaps, returned
	first, last   atomic.Int64 // µs: before the first take that was admitted, after the last
}

func (a *account) check(cost int64) algorithms.Check {
	return algorithms.Check{Policy: a.policy, Key: a.key, Limit: a.limit, Fail: a.fail, Cost: cost}
}

// add notes units that a limiter admitted.
func (a *account) add(source algorithms.Source, units int64) {
	switch source {
	case algorithms.Shared:
		a.shared.Add(units)
	case algorithms.Local:
		a.local.Add(units)
	}
}

// admit notes a take that was admitted.
func (a *account) admit(c *algorithms.Check, asked time.Time) {
	a.add(c.Decision.Source, c.Cost)
	a.first.CompareAndSwap(0, asked.UnixMicro())
	for now := time.Now().UnixMicro(); ; {
		if last := a.last.Load(); now <= last || a.last.CompareAndSwap(last, now) {
			return
		}
	}
}

// admits is what the limit alone does in the time in which the key was used:
// B + R T/W, and of windows R in each that the time touches.
func (a *account) admits() int64 {
	r, w := a.limit.Requests(), a.limit.Window().Microseconds()
	first, last := a.first.Load()-early, a.last.Load()
	switch a.limit.Algorithm() {
	case logs:
		return r * ((last-first)/w + 1)
	case counters, windows:
		return r * (last/w - first/w + 1)
	default:
		return a.limit.Burst() + (last-first)*r/w + 1
	}
}

// early is how much earlier, in µs, a caller may have asked than that which was
// the first to note it.
const early = 300_000

var (
	counters = algorithms.SlidingWindowCounter(1, time.Second).Algorithm()
	logs     = algorithms.SlidingWindowLog(1, time.Second).Algorithm()
	windows  = algorithms.FixedWindow(1, time.Second).Algorithm()
)

// A claim is what was admitted, and what may have been.
type claim struct {
	what      string
	got, most int64
}

func (c claim) String() string { return fmt.Sprintf("%s %d of %d", c.what, c.got, c.most) }

// exceeds reports whether c is nearer to its bound than other, or further above.
func (c claim) exceeds(other claim) bool {
	return other.most == 0 || c.got*other.most > other.got*c.most
}

// claims are what is promised of a key after so many losses of data.
func (a *account) claims(losses, instances int64) []claim {
	admits := a.admits()
	alone := a.limit.Burst() + (a.last.Load()-a.first.Load()+early)*a.limit.Requests()/a.limit.Window().Microseconds() + instances
	if instances == 1 { // windows are windows
		alone = max(alone, admits)
	}
	return []claim{
		{"by Redis", a.shared.Load(), admits + losses*a.limit.Burst()},
		{"locally", a.local.Load(), alone},
	}
}

// together is what the runbook says of both.
func (a *account) together(losses, instances int64) claim {
	return claim{"together", a.shared.Load() + a.local.Load(), a.admits()*5/4 + losses*a.limit.Burst() + instances}
}
