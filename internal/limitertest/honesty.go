package limitertest

import (
	"fmt"
	"testing"
	"time"

	"github.com/penstock-go/penstock/algorithms"
)

// runHonesty checks figures against what the limiter does afterwards, from random states under awkward limits, also
// after the clock was set.
func runHonesty(t *testing.T, s Subject) {
	for _, of := range everyConstructor {
		for _, test := range honestyTests {
			t.Run(of(1, time.Second).Algorithm().String()+" "+test.name, func(t *testing.T) {
				t.Parallel()
				r := newSource(t)
				w := s.world(t, test.rule)
				for range s.traces(t) {
					w := w.fresh()
					l := r.limit(of)
					w.disturb(r, "", l)
					test.run(w, r, l)
					if t.Failed() {
						return
					}
				}
			})
		}
	}
	t.Run("calls", func(t *testing.T) {
		t.Parallel()
		r := newSource(t)
		w := s.world(t, "RetryAfter of a call is the longest of its Takes': a µs before it the call is denied, at it allowed")
		for range 4 * s.traces(t) {
			if w.fresh().honestCall(r); t.Failed() {
				return
			}
		}
	})
	t.Run("waits-are-bounded", func(t *testing.T) { t.Parallel(); s.runBounded(t) })
}

var honestyTests = []struct {
	name, rule string
	run        func(w *world, r source, l algorithms.Limit)
}{
	{"RetryAfter", "one µs before RetryAfter the same call is denied, at it allowed", func(w *world, r source, l algorithms.Limit) {
		w.honest(w.on("", l, r.cost(l)))
	}},
	{"figures", "figures are those of the state: what a probe of each would be answered", func(w *world, r source, l algorithms.Limit) {
		c := w.on("", l, r.cost(l))
		w.audit(c, w.one(c))
	}},
	{"ResetAfter", "at ResetAfter the full limit is available, one µs before it is not", func(w *world, r source, l algorithms.Limit) {
		c := w.on("", l, r.cost(l))
		d := w.one(c)
		if d.ResetAfter == 0 || !w.reachable(d.ResetAfter) {
			return
		}
		c.Cost = l.Burst()
		w.sleep(d.ResetAfter - µs)
		if got := w.one(c); got.Allowed || got.ResetAfter != µs {
			w.errorf("%v: one µs before ResetAfter, %s: got %s, want a denial and ResetAfter 1", l, micros(d.ResetAfter), show(got))
		}
		w.sleep(µs)
		if got := w.peek(c); got != (figures{Remaining: l.Burst()}) {
			w.errorf("%v: at ResetAfter, %s: got %+v, want the full limit", l, micros(d.ResetAfter), got)
		}
		if got := w.one(c); !got.Allowed {
			w.errorf("%v: at ResetAfter, %s: got a cost of the burst denied, want allowed", l, micros(d.ResetAfter))
		}
	}},
	{"UnitAfter", "at UnitAfter one unit can be taken, one µs before it cannot", func(w *world, r source, l algorithms.Limit) {
		d := w.take(l, r.cost(l))
		if d.UnitAfter == 0 || !w.reachable(d.UnitAfter) {
			return
		}
		w.sleep(d.UnitAfter - µs)
		before := w.take(l, 1)
		w.sleep(µs)
		if at := w.take(l, 1); before.Allowed || !at.Allowed || before.UnitAfter != µs {
			w.errorf("%v: UnitAfter %s: got %s one µs before it, %s at it", l, micros(d.UnitAfter), show(before), show(at))
		}
	}},
	{"second-try", "who sleeps exactly RetryAfter is in at the second try, also if the clock was set before the first", func(w *world,
		r source, l algorithms.Limit,
	) {
		cost := 1 + r.Int64N(l.Burst())
		w.take(l, cost)
		w.move(pick(r, -time.Minute, -40*24*time.Hour, -µs, -100*time.Millisecond, -100*time.Millisecond-µs, time.Hour))
		for tries := 1; tries <= 2; tries++ {
			d := w.take(l, cost)
			if d.Allowed {
				return
			}
			if tries == 2 {
				w.errorf("%v: got the second try for %d denied: %s", l, cost, show(d))
			}
			if !w.reachable(d.RetryAfter) {
				return
			}
			w.sleep(d.RetryAfter)
		}
	}},
	{"Delay", "a leaky bucket holds until what was in it has drained, and nothing else holds", func(w *world, r source, l algorithms.Limit) {
		before := w.peek(w.on("", l, 0))
		d := w.take(l, r.cost(l))
		var want time.Duration
		if d.Allowed && d.Receipt.Units() > 0 && l.Algorithm().String() == "leaky-bucket" {
			want = before.ResetAfter
		}
		if d.Delay != want {
			w.errorf("%v: got %s, want a Delay of %s", l, show(d), micros(want))
		}
	}},
}

// honest wants that a call that is denied now is denied until its RetryAfter, and allowed at it.
func (w *world) honest(call ...algorithms.Check) {
	w.Helper()
	first := w.allow(append([]algorithms.Check(nil), call...)...)
	d := wait(first)
	if algorithms.Allowed(first) != (d == 0) {
		w.errorf("%s: got Allowed %t with RetryAfter %s", text(first), algorithms.Allowed(first), micros(d))
	}
	if d == 0 || !w.reachable(d) {
		return
	}
	var before time.Duration
	for _, step := range []time.Duration{µs, d / 2, d - µs} {
		if step = step.Truncate(µs); step <= before || step >= d {
			continue
		}
		w.sleep(step - before)
		before = step
		then := w.allow(append([]algorithms.Check(nil), call...)...)
		if algorithms.Allowed(then) || wait(then) != d-step {
			w.errorf("%s, denied with RetryAfter %s: got Allowed %t after %s, with RetryAfter %s",
				text(first), micros(d), algorithms.Allowed(then), micros(step), micros(wait(then)))
		}
	}
	w.sleep(d - before)
	if last := w.allow(append([]algorithms.Check(nil), call...)...); !algorithms.Allowed(last) {
		w.errorf("%s, denied with RetryAfter %s: got denied after it, with another %s", text(first), micros(d), micros(wait(last)))
	}
}

// reachable reports whether the clock can be moved on by d.
func (w *world) reachable(d time.Duration) bool {
	return d != algorithms.Never && w.clock.instant()+d.Microseconds() < lastInstant
}

// honestCall asks a random call of several checks on three keys.
func (w *world) honestCall(r source) {
	w.Helper()
	limits := []algorithms.Limit{r.anyLimit(), r.anyLimit(), r.anyLimit()}
	for i, l := range limits {
		w.disturb(r, fmt.Sprint(i), l)
	}
	var call []algorithms.Check
	for range 1 + r.IntN(4) {
		i := r.IntN(len(limits))
		call = append(call, w.on(fmt.Sprint(i), limits[i], min(r.cost(limits[i]), limits[i].Burst())))
	}
	w.honest(call...)
}

// bound returns the longest wait for a cost within the burst, from the fullest state that takes and debt can make.
func bound(l algorithms.Limit) time.Duration {
	const late = 100 * time.Millisecond // the tolerance: a state may lie that far ahead
	var summerTime time.Duration
	if l.Algorithm().Calendar() {
		summerTime = time.Hour
	}
	if !l.Algorithm().Continuous() {
		return 2*(l.Window()+summerTime) + late
	}
	us := float64(l.Window().Microseconds()) * float64(2*l.Burst()) / float64(l.Requests())
	if us > 1<<52 {
		return algorithms.Never
	}
	return time.Duration(us+2)*µs + late
}

func (s Subject) runBounded(t *testing.T) {
	r := newSource(t)
	w := s.world(t, "no wait is longer than it takes to drain a full debt, wherever the clock jumps")
	for range s.traces(t) {
		w := w.fresh()
		l := r.anyLimit()
		w.disturb(r, "", l)
		w.one(as(algorithms.Force, w.on("", l, 1<<62)))
		w.move(pick(r, -time.Hour, -time.Minute, -400*24*time.Hour, 0))
		d := w.take(l, 1+r.Int64N(l.Burst()))
		if longest := bound(l); d.RetryAfter > longest {
			w.errorf("%v: got RetryAfter %s, want at most %s", l, micros(d.RetryAfter), micros(longest))
		}
	}
}
