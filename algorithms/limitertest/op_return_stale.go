// Receipts of takes that the state does not hold any more. Returning them must credit no unit of another take.

package limitertest

import (
	"time"

	"github.com/penstock-go/penstock/algorithms"
)

var staleReturnRules = []rule{
	{
		// X and A are taken at once, and X is returned. C takes the place of X, so the state looks as A left it. But
		// without A the unit of C would have begun to drain at its own take: 0.9 of A have drained.
		"looks-the-same",
		"a Return credits what has not drained, even if the state equals the state after the take",
		func(w *world) {
			l := algorithms.TokenBucket(1, time.Second).WithBurst(2)
			x, a := w.allow(w.on("", l, 1))[0], w.allow(w.on("", l, 1))[0]
			w.one(back(x, 1))
			w.sleep(900 * time.Millisecond)
			w.verdicts(w.allow(w.on("", l, 1)), true)
			w.one(back(a, 1))
			w.verdicts(w.allow(w.on("", l, 1)), true)
			w.sleep(100 * time.Millisecond)
			w.verdicts(w.allow(w.on("", l, 1)), false)
		},
	},
	{
		"after-a-reset",
		"a take from before a Reset is not credited after it, not even at the same instant",
		func(w *world) {
			for _, l := range limits(stringStored(), 5, time.Hour) {
				for _, pause := range []time.Duration{0, µs, time.Second, 12 * time.Minute} {
					w := w.fresh()
					a := w.allow(w.on("", l, 5))[0]
					w.one(as(algorithms.Reset, w.on("", l, 0)))
					w.sleep(pause)
					b := w.allow(w.on("", l, 5))[0]
					w.verdicts([]algorithms.Check{b}, true)
					w.one(back(a, 5))
					w.remaining(w.on("", l, 0), 0)
					w.one(back(b, 5))
					w.full(w.on("", l, 0))
				}
			}
		},
	},
	{
		"two-resets",
		"each Reset begins an era, and only takes of the present one are credited",
		func(w *world) {
			for _, l := range limits(stringStored(), 5, time.Hour) {
				w := w.fresh()
				var earlier []algorithms.Check
				for range 3 {
					earlier = append(earlier, w.allow(w.on("", l, 2))[0])
					w.one(as(algorithms.Reset, w.on("", l, 0)))
				}
				w.take(l, 4)
				for _, c := range earlier {
					w.one(back(c, 2))
				}
				w.remaining(w.on("", l, 0), 1)
			}
		},
	},
	{
		// The second take comes half a second after the first, and notes that. The clock steps back before it.
		"after-a-step-back-at-a-raised-rate",
		"a repair of the clock ends receipts, also of a state that was judged from a later instant on",
		func(w *world) {
			slow, fast := algorithms.TokenBucket(1, time.Hour).WithBurst(10), algorithms.TokenBucket(10, time.Second)
			w.take(slow, 1)
			w.to(500_000)
			a := w.allow(w.on("", slow, 9))[0]
			w.to(100_000)
			a.Limit = fast
			w.one(back(a, 9))
			w.remaining(w.on("", slow, 0), 0)
		},
	},
	{
		// Three units of A have drained when B takes three. The clock of the Return is behind both.
		"by-a-late-caller",
		"a Return credits no unit that had drained when the state was written, whatever its caller's clock says",
		func(w *world) {
			l := algorithms.TokenBucket(100, time.Second).WithBurst(10)
			a := w.allow(w.on("", l, 4))[0]
			w.to(30_000)
			w.take(l, 3)
			w.to(-1_000)
			w.one(back(a, 4))
			w.to(30_000)
			w.remaining(w.on("", l, 0), 7)
		},
	},
	{
		"two-rates",
		"a take that has drained at a faster rate is not credited at the slower one again",
		func(w *world) {
			slow, fast := algorithms.TokenBucket(5, time.Hour), algorithms.TokenBucket(5, time.Second)
			a := w.allow(w.on("", slow, 5))[0]
			w.sleep(2 * time.Second)
			w.verdicts(w.allow(w.on("", fast, 5)), true)
			w.one(back(a, 5))
			w.remaining(w.on("", slow, 0), 0)
		},
	},
	{
		// At ten seconds A has drained or rolled away. The clock steps back to the instant of A, with the units of B.
		"after-a-step-back",
		"a take that was gone before the clock stepped back is not credited",
		func(w *world) {
			for _, l := range limits(stringStored(), 5, 10*time.Second) {
				w := w.fresh()
				if algorithmOf(l).days {
					continue
				}
				a := w.allow(w.on("", l, 5))[0]
				w.sleep(2 * l.Window())
				w.verdicts(w.allow(w.on("", l, 5)), true)
				w.to(0)
				w.one(back(a, 5))
				w.remaining(w.on("", l, 0), 0)
			}
		},
	},
	{
		// One take drains long before the hundred of before the Reset would have.
		"long-after-a-reset",
		"a Reset is remembered for as long as a receipt from before it could count",
		func(w *world) {
			l := algorithms.TokenBucket(100, time.Minute)
			a := w.allow(w.on("", l, 100))[0]
			w.sleep(time.Second)
			w.one(as(algorithms.Reset, w.on("", l, 0)))
			w.sleep(time.Second)
			w.outlives(a, func() { w.take(l, 1) })
			w.sleep(8 * time.Second)
			first := w.allow(w.on("", l, 1))[0]
			w.take(l, 99)
			w.one(back(first, 1))
			w.one(back(a, 100))
			if got := w.peek(w.on("", l, 0)).Remaining; got > 1 {
				w.errorf("got %d remaining beside 99, want at most the returned one", got)
			}
		},
	},
	{
		// A state that has drained keeps its era. A step back of the clock must not bring its units back.
		"restored-and-drained",
		"a Return of units that have drained stores that they have",
		func(w *world) {
			l := algorithms.TokenBucket(1, time.Second).WithBurst(10)
			w.take(l, 1)
			w.one(as(algorithms.Reset, w.on("", l, 0)))
			a := w.allow(w.on("", l, 2))[0]
			w.sleep(1500 * time.Millisecond)
			w.one(back(a, 1))
			w.to(-10 * second)
			w.remaining(w.on("", l, 0), 10)
		},
	},
	{
		// The return of X mixes the state. Requests of a second each then follow each other, and are returned.
		"returned-for-a-minute",
		"a Return of the latest take leaves no trace of it, also after returns in another order",
		func(w *world) {
			l := algorithms.TokenBucket(1, time.Second).WithBurst(10)
			x := w.allow(w.on("", l, 1))[0]
			w.take(l, 9)
			w.sleep(10 * time.Millisecond)
			w.one(back(x, 1))
			for range 60 {
				c := w.allow(w.on("", l, 1))[0]
				w.sleep(990 * time.Millisecond)
				if c.Decision.Allowed {
					w.one(back(c, 1))
				}
				w.sleep(10 * time.Millisecond)
			}
			w.remaining(w.on("", l, 0), 10)
		},
	},
	{
		"queue-after-a-grant",
		"the newest take of a leaky bucket is returned whole, also after a Grant",
		func(w *world) {
			l := algorithms.LeakyBucket(1, time.Second).WithBurst(10)
			w.take(l, 5)
			w.one(as(algorithms.Grant, w.on("", l, 1)))
			a := w.allow(w.on("", l, 3))[0]
			w.one(back(a, 3))
			w.remaining(w.on("", l, 0), 6)
		},
	},
	{
		// The bucket drains a unit every 1.6 ms, and all within two seconds of the epoch of Unix.
		"before-1970",
		"a Return near the epoch leaves a state that parses and drains",
		func(w *world) {
			l := algorithms.TokenBucket(7, 11*time.Second).WithBurst(1000)
			w.clock.set(900_351)
			first := w.allow(w.on("", l, 2))[0]
			w.take(l, 1)
			w.take(l, 782)
			w.clock.set(900_352)
			first = w.allow(back(first, 1))[0]
			w.one(back(first, 1))
			d := w.take(l, 0)
			if d.Remaining < 216 || d.Remaining > 217 || d.ResetAfter == algorithms.Never {
				w.errorf("got %s, want 216 or 217 remaining", show(d))
			}
			w.honest(w.on("", l, 300))
		},
	},
}

// outlives wants that a write does not shorten the life of a key, if that can be seen. Keys that injected clocks keep
// for a minute show nothing, so the states before must live longer.
func (w *world) outlives(c algorithms.Check, write func()) {
	w.Helper()
	if w.s.Store == nil {
		write()
		return
	}
	before := w.s.Store.TTL(w, c)
	write()
	if after := w.s.Store.TTL(w, c); before < 61*time.Second || after < before-time.Minute/2 {
		w.errorf("%v: got a key that lives for %v after a write, and for %v before", c.Limit, after, before)
	}
}

// stringStored returns the algorithms whose states are strings: their takes have no instants of their own.
func stringStored() []algorithm {
	return which(func(a algorithm) bool { return a.storage == texts })
}
