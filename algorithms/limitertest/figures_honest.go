// Figures against the later answers of the limiter, from random states under awkward limits, also after the clock was
// set. A figure is honest if a call one µs before the promised instant is denied, and a call at it is allowed.

package limitertest

import (
	"testing"
	"time"

	"github.com/penstock-go/penstock/algorithms"
)

func runHonesty(t *testing.T, s Subject) {
	for _, a := range every() {
		for _, test := range honestyTests {
			s.runRandom(t, a.name()+": "+test.rule, test.rule, func(w *world, r source) {
				l := r.limit(a)
				w.disturb(r, w.on("", l, 0))
				test.run(w, r, l)
			})
		}
	}
	const call = "a call is denied one µs before the longest RetryAfter of its Takes and pairs, and allowed at it"
	s.runRandom(t, "calls", call, func(w *world, r source) {
		for range 4 {
			w.fresh().honestCall(r, (*world).cell)
		}
	})
	s.runRandom(t, "waits-are-bounded", "no wait is longer than it takes to drain a full debt, wherever the clock jumps", (*world).bounded)
}

var honestyTests = []struct {
	rule string
	run  func(w *world, r source, l algorithms.Limit)
}{
	{"one µs before RetryAfter the same call is denied, at it allowed", func(w *world, r source, l algorithms.Limit) {
		w.honest(w.on("", l, r.cost(l)))
	}},
	// ResetAfter and UnitAfter are the RetryAfter of the burst and of one unit, so they are as honest.
	{"figures are those of the state, as probes of each one find", func(w *world, r source, l algorithms.Limit) {
		c := w.on("", l, r.cost(l))
		w.audit(c, w.one(c))
	}},
	// The first try repairs a state from the future, so the second one can rely on the figures of the first.
	{"a caller who sleeps RetryAfter is admitted at the second try, also if the clock was set before the first", func(w *world, r source, l algorithms.Limit) {
		cost := 1 + r.Int64N(l.Burst())
		w.take(l, cost)
		w.move(pick(r, -time.Minute, -40*24*time.Hour, -µs, -lateCallers, -lateCallers-µs, time.Hour))
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
	// The units before the take drain until the ResetAfter of the state before it.
	{"a leaky bucket delays until the units before the take have drained, and no other algorithm delays", func(w *world, r source, l algorithms.Limit) {
		before := w.peek(w.on("", l, 0))
		d := w.take(l, r.cost(l))
		var want time.Duration
		if d.Allowed && d.Receipt.Units() > 0 && algorithmOf(l).delays {
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
		w.errorf("%s, denied with RetryAfter %s: got denied after it, with another %s",
			text(first), micros(d), micros(wait(last)))
	}
}

// reachable reports whether the clock can be moved on by d.
func (w *world) reachable(d time.Duration) bool {
	return d != algorithms.Never && w.clock.instant()+d.Microseconds() < lastInstant
}

// honestCall asks a random call of takes, pairs and trials on keys in random states.
func (w *world) honestCall(r source, place placing) {
	w.Helper()
	plan, call := r.historyOf(pick(r, every()...), historyKeys, false), plannedCall{}
	for range 1 + r.IntN(4) {
		call.checks = append(call.checks, plan.takes(call.checks, true)...)
	}
	checks := (&player{world: w, place: place}).checks(call)
	for _, c := range checks {
		if c.Limit != algorithms.Nobody() {
			w.disturb(r, c)
		}
	}
	w.honest(checks...)
}

// bound returns the longest wait for a cost within the burst, from the fullest state that takes and debt can make, as far
// ahead of the clock as a late caller may find it.
func bound(l algorithms.Limit) time.Duration {
	var summerTime time.Duration
	if algorithmOf(l).days {
		summerTime = time.Hour
	}
	if algorithmOf(l).family != bucket {
		return 2*(l.Window()+summerTime) + lateCallers
	}
	us := float64(l.Window().Microseconds()) * float64(2*l.Burst()) / float64(l.Requests())
	if us > 1<<52 {
		return algorithms.Never
	}
	return time.Duration(us+2)*µs + lateCallers
}

func (w *world) bounded(r source) {
	w.Helper()
	l := r.anyLimit()
	w.disturb(r, w.on("", l, 0))
	w.one(as(algorithms.Force, w.on("", l, 1<<62)))
	w.move(pick(r, -time.Hour, -time.Minute, -400*24*time.Hour, 0))
	d := w.take(l, 1+r.Int64N(l.Burst()))
	if longest := bound(l); d.RetryAfter > longest {
		w.errorf("%v: got RetryAfter %s, want at most %s", l, micros(d.RetryAfter), micros(longest))
	}
}
