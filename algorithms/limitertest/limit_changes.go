// Limits that change on live keys. A limit travels with every check, so units in use must carry over.

package limitertest

import (
	"testing"
	"time"

	"github.com/penstock-go/penstock/algorithms"
)

func runLimits(t *testing.T, s Subject) {
	for _, a := range every() {
		for _, r := range limitRules {
			t.Run(a.name()+" "+r.name, func(t *testing.T) {
				t.Parallel()
				r.run(s.world(t, r.rule), a)
			})
		}
	}
	s.run(t, otherLimitRules)
}

var limitRules = []struct {
	name, rule string
	run        func(w *world, a algorithm)
}{
	{
		// Ten are in use, so 25 - 10 fit.
		"raise",
		"a raised limit admits at once what it adds",
		func(w *world, a algorithm) {
			w.take(a.of(10, time.Minute), 10)
			if d := w.take(a.of(25, time.Minute), 15); !d.Allowed || d.Remaining != 0 {
				w.errorf("got %s, want 15 more allowed and no more", show(d))
			}
			w.honest(w.on("", a.of(25, time.Minute), 1))
		},
	},
	{
		// Seven are in use under a limit of five: no cost fits, not even 0.
		"lower",
		"under a lowered limit units in use still count, and are waited off",
		func(w *world, a algorithm) {
			w.take(a.of(10, time.Minute), 7)
			lower := a.of(5, time.Minute)
			for _, cost := range []int64{0, 1, 5} {
				if d := w.take(lower, cost); d.Allowed || d.Remaining != 0 || d.RetryAfter == algorithms.Never {
					w.errorf("cost %d: got %s, want denied for a while", cost, show(d))
				}
			}
			w.honest(w.on("", lower, 1))
		},
	},
	{
		// Of 10 000 units in use a limit of 3 counts at most two bursts, so that a lowered limit locks nobody out for
		// long.
		"lower-far",
		"a limit lowered far is waited off in at most two of its bursts",
		func(w *world, a algorithm) {
			w.take(a.of(10_000, time.Minute), 10_000)
			lower := a.of(3, time.Minute)
			d := w.take(lower, 1)
			if d.Allowed || d.RetryAfter > 2*lower.Window() {
				w.errorf("got %s, want a wait of at most two windows", show(d))
			}
			w.honest(w.on("", lower, 1))
		},
	},
	{
		// Denials under the lower limit write nothing, so the cap of its debt cuts nothing off.
		"there-and-back",
		"a lowered limit that admits no request forgets nothing",
		func(w *world, a algorithm) {
			l := a.of(10, time.Minute)
			w.take(l, 9)
			before := w.peek(w.on("", l, 0))
			w.take(a.of(2, time.Minute), 1)
			w.take(a.of(2, time.Hour), 0)
			if got := w.peek(w.on("", l, 0)); got != before {
				w.errorf("got %+v, want %+v", got, before)
			}
		},
	},
	{
		"random",
		"figures are honest under a limit that has just changed",
		func(w *world, a algorithm) {
			r := newSource(w)
			for range w.s.traces(w) / 2 {
				w := w.fresh()
				w.disturb(r, "", r.limit(a))
				w.disturb(r, "", r.limit(a))
				l := r.limit(a)
				w.audit(w.on("", l, 0), w.take(l, r.cost(l)))
				w.honest(w.on("", l, r.cost(l)))
			}
		},
	},
}

var otherLimitRules = []rule{
	{
		"nobody-for-a-while",
		"the limit of nobody forgets nothing",
		func(w *world) {
			for _, l := range ten() {
				w.take(l, 6)
				w.take(algorithms.Nobody(), 1)
				w.one(as(algorithms.Reset, w.on("", algorithms.Nobody(), 0)))
				w.remaining(w.on("", l, 0), 4)
			}
		},
	},
	{
		// The algorithm is part of the stored key, so no algorithm reads a state that it cannot interpret.
		"another-algorithm",
		"another algorithm is another key: it reads no state of the first, and leaves it alone",
		func(w *world) {
			hundred := limits(every(), 100, time.Minute)
			for i, l := range hundred {
				w.full(w.on("", l, 0))
				w.take(l, int64(i+1))
			}
			for i, l := range hundred {
				w.remaining(w.on("", l, 0), int64(100-i-1))
			}
		},
	},
	{
		// One unit has refilled after 6 s, so 14 - 9 fit. Under the burst of 3 the state is cut to 6 units. 4 of them
		// must drain: 24 s.
		"burst",
		"a raised burst admits at once what it adds, at the same rate",
		func(w *world) {
			for _, l := range limits(buckets(), 10, time.Minute) {
				w.take(l, 10)
				w.sleep(6 * time.Second)
				if d := w.take(l.WithBurst(14), 5); !d.Allowed || d.Remaining != 0 {
					w.errorf("got %s, want 1 + 4 units allowed", show(d))
				}
				if d := w.take(l.WithBurst(3), 1); d.Allowed || d.RetryAfter != 24*time.Second {
					w.errorf("got %s, want the 14 read as 6, and 4 of them waited off in 24 s", show(d))
				}
				w = w.fresh()
			}
		},
	},
	{
		// After a second, 10 per 10 s has refilled one unit, 10 per second all, and 10 per hour none.
		"rate",
		"a changed rate prices the time since the last take",
		func(w *world) {
			for _, a := range buckets() {
				w.take(a.of(10, time.Minute), 10)
				w.sleep(time.Second)
				w.remaining(w.on("", a.of(10, 10*time.Second), 0), 1)
				w.remaining(w.on("", a.of(10, time.Second), 0), 10)
				w.remaining(w.on("", a.of(10, time.Hour), 0), 0)
				w = w.fresh()
			}
		},
	},
	{
		// No unit had drained when the last 59 were taken. At 100 per second, 99 would have.
		"raise-a-minute",
		"a raised rate gives nothing for the time before the last take",
		func(w *world) {
			for _, a := range buckets() {
				w.take(a.of(60, time.Minute), 1)
				w.sleep(990 * time.Millisecond)
				w.take(a.of(60, time.Minute), 59)
				raised := a.of(6_000, time.Minute).WithBurst(60)
				w.remaining(w.on("", raised, 0), 0)
				w.sleep(100 * time.Millisecond)
				w.remaining(w.on("", raised, 0), 10)
				w = w.fresh()
			}
		},
	},
	{
		"raise-a-day",
		"a raised rate gives nothing for a day before the last take, and counts from it on",
		func(w *world) {
			for _, a := range buckets() {
				slow, fast := a.of(1, 24*time.Hour).WithBurst(10), a.of(1, time.Second).WithBurst(10)
				w.take(slow, 1)
				w.sleep(23 * time.Hour)
				w.take(slow, 9)
				w.remaining(w.on("", fast, 0), 0)
				w.sleep(4 * time.Second)
				w.remaining(w.on("", fast, 0), 4)
				w.remaining(w.on("", slow, 0), 0)
				w.honest(w.on("", fast, 5))
				w = w.fresh()
			}
		},
	},
	{
		// The return at 0.991 s moves the state, to an instant almost a second back.
		"raise-after-a-return",
		"a raised rate gives nothing for the time before a Return",
		func(w *world) {
			slow := algorithms.TokenBucket(60, time.Minute)
			w.take(slow, 1)
			w.sleep(990 * time.Millisecond)
			b := w.allow(w.on("", slow, 19))[0]
			w.take(slow, 40)
			w.sleep(time.Millisecond)
			w.one(back(b, 19))
			before := w.peek(w.on("", slow, 0)).Remaining
			if after := w.peek(w.on("", algorithms.TokenBucket(6_000, time.Minute).WithBurst(60), 0)).Remaining; after > before+1 {
				w.errorf("got %d remaining, and %d before the raise", after, before)
			}
		},
	},
	{
		// A late caller, and a charge under a large burst: neither must hide the charge at 0.99 s, or at 23 h.
		"raise-after-other-charges",
		"a raised rate gives nothing for the time before the last take, whatever is charged beside it",
		func(w *world) {
			slow := algorithms.TokenBucket(60, time.Minute)
			w.take(slow, 1)
			w.sleep(990 * time.Millisecond)
			w.take(slow, 58)
			w.to(930_000)
			w.take(slow, 1)
			w.to(990_000)
			w.remaining(w.on("", algorithms.TokenBucket(60_000, time.Minute).WithBurst(60), 0), 0)
			w = w.fresh()
			slow = algorithms.TokenBucket(1, 24*time.Hour).WithBurst(10)
			w.take(slow, 1)
			w.sleep(23 * time.Hour)
			w.take(slow, 9)
			w.take(slow.WithBurst(1_000), 1)
			w.remaining(w.on("", algorithms.TokenBucket(1, time.Second).WithBurst(11), 0), 0)
		},
	},
	{
		// A unit drains between two µs, so the state has a fraction when the Grant empties it at 0.19 s. The take at
		// 0.25 s must not delay the unit that is taken at 0.19 s.
		"raise-after-a-grant",
		"a Grant that empties a bucket forgets when the units were taken, also after the clock has stepped back",
		func(w *world) {
			for _, a := range buckets() {
				slow := a.of(7, time.Hour).WithBurst(100)
				w.take(a.of(7, time.Second), 2)
				w.to(150_000)
				w.take(a.of(7, time.Second), 1)
				w.to(250_000)
				w.take(slow, 50)
				w.to(190_000)
				w.one(as(algorithms.Grant, w.on("", slow, 100)))
				w.take(slow, 1)
				w.to(210_000)
				w.remaining(w.on("", a.of(100, 100*time.Millisecond), 0), 100)
				w = w.fresh()
			}
		},
	},
	{
		// The bucket drains a unit per interval of the first limit. The takes are at random instants of it.
		"raise-random",
		"a raised rate adds at most a sixteenth of the burst, or what it refills in ten milliseconds",
		func(w *world) {
			r := newSource(w)
			for range w.s.traces(w) {
				a := pick(r, buckets()...)
				burst := 1 + r.Int64N(100)
				slow := a.of(1+r.Int64N(burst), pick(r, time.Second, time.Minute, time.Hour)).WithBurst(burst)
				for range 4 {
					w.take(slow, 1+r.Int64N(burst))
					w.move(time.Duration(r.Int64N(slow.Window().Microseconds()/slow.Requests())) * µs)
				}
				if d := w.take(slow, 1); !d.Allowed {
					w = w.fresh()
					continue
				}
				before := w.peek(w.on("", slow, 0)).Remaining
				fast := a.of(1+r.Int64N(1_000), pick(r, time.Millisecond, 100*time.Millisecond, time.Second)).WithBurst(burst)
				most := max(burst/16, 1+fast.Requests()*10*time.Millisecond.Microseconds()/fast.Window().Microseconds())
				if after := w.peek(w.on("", fast, 0)).Remaining; after > before+most {
					w.errorf("%v to %v: got %d remaining, want at most %d and %d more", slow, fast, after, before, most)
				}
				w = w.fresh()
			}
		},
	},
}
