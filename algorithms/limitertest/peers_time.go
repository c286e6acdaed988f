// Bugs of other limiters with clocks, windows and expiry.

package limitertest

import (
	"fmt"
	"time"

	"github.com/penstock-go/penstock/algorithms"
)

var clockPeers = []rule{
	{
		// Keys lived for two seconds whatever the burst. At 10 per minute a drained bucket was full again after eight
		// seconds, because its key was gone.
		"Traefik: a TTL that ignores the burst",
		"a drained bucket refills at its rate, and not because its key expires",
		func(w *world) {
			for _, a := range buckets() {
				for step := 1; step <= 60; step += 7 {
					w := w.fresh()
					l := a.of(10, time.Minute)
					w.take(l, 10)
					w.sleep(time.Duration(step) * time.Second)
					w.remaining(w.on("", l, 0), int64(step/6))
				}
			}
		},
	},
	{
		// The script stored the time of each caller. Two callers whose clocks differed by 100 ms moved the time ahead
		// in turns, and each step refilled the bucket: 109 of 200 requests passed at a burst of 10.
		"Traefik: a late caller writes the time back",
		"two callers whose clocks differ by 100 ms get no more than one",
		func(w *world) {
			for _, a := range every() {
				l, admitted := a.of(10, time.Second), 0
				for i := range 100 {
					w.to(int64(i%2) * 100_000)
					if w.take(l, 1).Allowed {
						admitted++
					}
				}
				if admitted > 11 { // one refills in 100 ms
					w.errorf("%v: got %d of 100 admitted, want at most 11", l, admitted)
				}
			}
		},
	},
	{
		// Keys expired at an instant by the clock of the caller. For a caller that was two minutes slow they had
		// expired when they were written, so nothing was limited.
		"rueidislimiter: expiry by a slow caller's clock",
		"a caller that is two minutes slow is limited, and its keys expire",
		func(w *world) {
			for _, a := range every() {
				w := w.fresh()
				l := a.of(5, time.Second)
				w.take(l, 2)
				w.to(-120 * second)
				for i := range 4 {
					if d := w.take(l, 1); d.Allowed != (i < 3) {
						w.errorf("%v: take %d after the first two: got %s, want 5 in all", l, i, show(d))
					}
					if w.s.Store != nil && w.s.Store.TTL(w, w.on("", l, 1)) <= 0 {
						w.errorf("%v: got a key that does not expire", l)
					}
				}
			}
		},
	},
	{
		// Instants were doubles in seconds. Since July 2025 they are too large for exact fractions, and a fresh key of
		// 10 per second answered 8 remaining after one request.
		"redis_rate: time as a float",
		"a fresh key has all but one remaining after one take, at any date and rate",
		func(w *world) {
			r := newSource(w)
			for i := range 4 * max(10, w.s.traces(w)) {
				l := r.anyLimit()
				w.clock.set(1 + r.Int64N(1<<52))
				c := w.on(fmt.Sprint(i), l, 1)
				if d := w.one(c); !d.Allowed || d.Remaining != l.Burst()-1 {
					w.errorf("%v at %d: got %s, want %d remaining", l, w.clock.instant(), show(d), l.Burst()-1)
				}
			}
		},
	},
	{
		// Windows were rounded down to whole seconds, so half a second became 0, and nothing was limited.
		"go-redisstore: windows below a second",
		"windows below a second limit, too",
		func(w *world) {
			windows := []time.Duration{
				500 * time.Millisecond, 999 * time.Millisecond, 1500 * time.Millisecond, time.Millisecond, 2 * µs,
			}
			for _, a := range timed() {
				for _, window := range windows {
					w := w.fresh()
					l := a.of(1, window)
					w.take(l, 1)
					w.honestStop(l)
					w.take(l, 1)
					w.honestStop(l)
				}
			}
		},
	},
	{
		// The count of the previous window expired in the middle of the next one, in which it still counts.
		"PostHog: the previous window expires early",
		"the previous window counts through all of the next",
		func(w *world) {
			l := algorithms.SlidingWindowCounter(60, time.Minute)
			w.take(l, 60)
			for s := range 60 {
				w.to(int64(30+s) * second)
				w.remaining(w.on("", l, 0), int64(s))
			}
		},
	},
	{
		// A state from the future locks a key out until the clock gets there. No limiter that we know bounds that
		// wait. Here the state moves back to the present.
		"GCRA limiters: the clock jumps ahead and back",
		"after a jump ahead and back no client is locked out",
		func(w *world) {
			for _, l := range ten() {
				w.to(0)
				w.sleep(60 * l.Window())
				w.take(l, 10)
				w.to(0)
				d := w.take(l, 1)
				if d.Allowed || d.RetryAfter > 2*l.Window() {
					w.errorf("%v: got %s, want a short wait", l, show(d))
				}
				w.honest(w.on("", l, 1))
			}
		},
	},
	{
		// The wait lasted until the previous window had left altogether. A part of it is enough.
		"mennanov/limiters: the overstated wait of a sliding counter",
		"the wait ends as soon as enough of the previous window has rolled away",
		func(w *world) {
			l := algorithms.SlidingWindowCounter(10, time.Minute)
			for used := int64(1); used <= 10; used++ {
				for cost := int64(1); cost <= 10; cost += 3 {
					w := w.fresh()
					w.take(l, used)
					w.to(30*second + used*second)
					w.take(l, 10-used)
					w.honest(w.on("", l, cost))
				}
			}
		},
	},
}
