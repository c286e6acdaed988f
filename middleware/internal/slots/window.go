package slots

import (
	"time"

	"github.com/penstock-go/penstock/algorithms"
)

// Jittered returns the wait of a denial with jitter: up to a tenth of the window, from 1 to 30 s. All instances and all
// tries get the same jitter.
func (d *Denial) Jittered(now time.Time) time.Duration {
	limit, wait := d.Limit, time.Duration(d.Wait)*time.Microsecond
	spread := min(max(limit.Window()/10, time.Second), 30*time.Second)
	slot := now.UnixNano() / int64(spread)
	if limit.Algorithm().Aligned() {
		// The end of the window, rounded because clocks differ a little.
		w := grid(limit).Microseconds()
		slot = (now.UnixMicro() + d.Wait + w/2) / w
	}
	return wait + Jitter(spread, d.Policy, d.Client, slot)
}

// grid returns a duration that divides all window ends of an aligned limit,
// counted from the epoch. Calendar periods end at whole minutes, because
// today's time zones differ from UTC by whole minutes.
func grid(l algorithms.Limit) time.Duration {
	if l.Algorithm().Calendar() {
		return time.Minute
	}
	return l.Window()
}
