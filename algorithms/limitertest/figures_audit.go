// Probes of the figures that a decision carries. Other files call audit wherever a state is of interest.

package limitertest

import (
	"fmt"
	"time"

	"github.com/penstock-go/penstock/algorithms"
)

// audit wants that the figures of a decision are those of the state after it. It asks again at the same instant: for
// nothing, for Remaining, for one unit more, and for the burst. None of that is charged.
func (w *world) audit(c algorithms.Check, d algorithms.Decision) {
	w.Helper()
	if !plausible(d, c.Limit) {
		w.errorf("%v %d under %v: got contradictory figures: %s", c.Op, c.Cost, c.Limit, show(d))
	}
	if got, want := w.peek(c), figuresOf(d); got != want {
		w.errorf("a peek after %v %d under %v: got %+v, want the figures of the decision, %+v",
			c.Op, c.Cost, c.Limit, got, want)
	}
	if d.Remaining > 0 {
		if got := w.probe(w.with(c, d.Remaining)); !got.Allowed {
			w.errorf("a cost of Remaining, %d, under %v: got denied, want allowed", d.Remaining, c.Limit)
		}
	}
	more := w.probe(w.with(c, d.Remaining+1))
	if more.Allowed {
		w.errorf("a cost of Remaining + 1, %d, under %v: got allowed, want denied", d.Remaining+1, c.Limit)
	}
	if d.Remaining == 0 && d.UnitAfter != more.RetryAfter {
		w.errorf("under %v: got UnitAfter %s, want the RetryAfter of one unit, %s",
			c.Limit, micros(d.UnitAfter), micros(more.RetryAfter))
	}
	if got, want := w.probe(w.with(c, c.Limit.Burst())), d.ResetAfter; got.RetryAfter != want {
		w.errorf("under %v: got ResetAfter %s, want the wait for a cost of the burst, %s",
			c.Limit, micros(want), micros(got.RetryAfter))
	}
}

// with returns a Take on the key of a check.
func (w *world) with(c algorithms.Check, cost int64) algorithms.Check {
	return algorithms.Check{Policy: c.Policy, Key: c.Key, Limit: c.Limit, Cost: cost}
}

// plausible reports whether the figures of a decision agree with each other.
func plausible(d algorithms.Decision, l algorithms.Limit) bool {
	// Each line is one fact: figures are in their bounds, a wait means a denial, a unit that can be taken needs no wait,
	// a full key has nothing to reset, one unit comes back no later than all of them, and only queues delay.
	return d.Remaining >= 0 && d.Remaining <= l.Burst() &&
		d.RetryAfter >= 0 && d.ResetAfter >= 0 && d.UnitAfter >= 0 && d.Delay >= 0 &&
		d.Allowed == (d.RetryAfter == 0) &&
		(d.Remaining > 0) == (d.UnitAfter == 0) &&
		(d.Remaining == l.Burst()) == (d.ResetAfter == 0) &&
		d.UnitAfter <= d.ResetAfter &&
		(d.Delay == 0 || d.Allowed && algorithmOf(l).delays)
}

// micros formats a duration in µs.
func micros(d time.Duration) string {
	if d == algorithms.Never {
		return "Never"
	}
	return fmt.Sprint(d.Microseconds())
}
