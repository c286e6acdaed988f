// Bugs of other limiters in charges, refunds, and remembered denials.

package limitertest

import (
	"time"

	"github.com/penstock-go/penstock/algorithms"
)

var chargePeers = []rule{
	{
		// A decrement of a counter of the next window made it negative, which admitted more than the limit.
		"express-rate-limit: a decrement after the window turned",
		"a return after the window has turned gives no free requests",
		func(w *world) {
			for _, a := range windowed() {
				w := w.fresh()
				l := a.of(5, time.Minute)
				taken := w.allow(w.on("", l, 5))[0]
				w.sleep(2 * l.Window())
				w.one(back(taken, 5))
				w.take(l, 5)
				if d := w.take(l, 1); d.Allowed || d.Remaining != 0 {
					w.errorf("%v: got %s, want denied", l, show(d))
				}
			}
		},
	},
	{
		// The expiry was set only by the increment that made the counter, so a key that lost it counted for ever.
		"ulule/limiter: a key without an expiry is stuck",
		"a key without an expiry has one after the next charge",
		func(w *world) {
			if w.s.Store == nil {
				return
			}
			for _, l := range ten() {
				c := w.on("", l, 1)
				w.plant(c, algorithmOf(l).storage.charged(3))
				w.remaining(c, 7)
				w.expires(c, w.one(c), injected)
			}
		},
	},
	{
		// The limit was stored beside the count, and the next request with the usual limit replaced it.
		"go-redisstore: an override dies with its bucket",
		"a limit stands as long as it is asked for, however often another is",
		func(w *world) {
			for _, a := range every() {
				base, override := a.of(3, time.Minute), a.of(50, time.Minute)
				for i := range 50 {
					if d := w.take(override, 1); !d.Allowed || d.Remaining != int64(49-i) {
						w.errorf("take %d under %v: got %s", i, override, show(d))
					}
					if d := w.take(base, 3); d.Allowed {
						w.errorf("take %d under %v: got %s, want denied", i, base, show(d))
					}
				}
				w = w.fresh()
			}
		},
	},
	{
		// The increment came before the comparison, so a denied cost kept smaller ones from being admitted.
		"rueidislimiter, envoyproxy/ratelimit, Kong: a denial is charged",
		"a denied cost is not counted against smaller ones",
		func(w *world) {
			for _, l := range ten() {
				w.take(l, 9)
				for range 5 {
					w.take(l, 100)
					w.take(l, 2)
				}
				if d := w.take(l, 1); !d.Allowed {
					w.errorf("%v: got the tenth of 10 denied after denials: %s", l, show(d))
				}
			}
		},
	},
	{
		// Each denied cost lowered the count of tokens further, to -103 at a limit of 10.
		"upstash: debt by denials",
		"denials dig no debt",
		func(w *world) {
			for _, l := range ten() {
				w.take(l, 8)
				before := w.peek(w.on("", l, 0))
				for range 20 {
					w.take(l, 5)
				}
				if got := w.peek(w.on("", l, 0)); got != before {
					w.errorf("%v: got %+v, want %+v", l, got, before)
				}
			}
		},
	},
	{
		// One answered the refund and did not store it. The other credited more than the limit.
		"redis_rate, gubernator: a refund is dropped or unbounded",
		"what is given back is there at the next look, and no more than the limit",
		func(w *world) {
			for _, l := range ten() {
				taken := w.allow(w.on("", l, 1))[0]
				w.one(back(taken, 1))
				w.full(taken)
				w.one(as(algorithms.Grant, w.on("", l, 5)))
				w.full(taken)
			}
		},
	},
	{
		// One promised that a cost above the burst fits in four seconds. The other answered more Remaining than the
		// limit.
		"redis_rate, throttled: a cost above the capacity",
		"a cost that never fits says Never, and Remaining is never above the limit",
		func(w *world) {
			for _, l := range ten() {
				if d := w.take(l, 11); d.Allowed || d.RetryAfter != algorithms.Never || d.Remaining != 10 {
					w.errorf("%v: got %s, want Never and 10 remaining", l, show(d))
				}
			}
		},
	},
	{
		// A small cost after a large one bypassed the limit, and limits were charged although a later one denied.
		"limits, caddy-ratelimit: mixed costs and several limits",
		"large and small costs add up, and no limit is charged when a later one denies",
		func(w *world) {
			for _, l := range ten() {
				tight := w.on("tight", algorithms.FixedWindow(2, time.Hour), 1)
				var used int64
				for _, cost := range []int64{7, 1, 5, 1, 3, 1, 1, 9} {
					if algorithms.Allowed(w.allow(w.on("", l, cost), tight)) {
						used += cost
					}
				}
				if used != 8 {
					w.errorf("%v: got %d admitted, want the 7 and a 1 that the tight limit lets through", l, used)
				}
				w.remaining(w.on("", l, 0), 2)
				w = w.fresh()
			}
		},
	},
	{
		// A remembered denial was repeated to requests that would have fit, and survived a reset.
		"upstash, rate-limiter-flexible: remembered denials",
		"a denial says nothing of smaller costs, nor after a Reset, a Grant or a raise",
		func(w *world) {
			for _, a := range every() {
				l := a.ten()
				w.take(l, 8)
				w.take(l, 5)
				w.verdicts(w.allow(w.on("", l, 2)), true)
				w.verdicts(w.allow(w.on("", l, 1)), false)
				w.verdicts(w.allow(w.on("", a.of(11, time.Minute), 1)), true)
				w.verdicts(w.allow(w.on("", l, 1)), false)
				w.one(as(algorithms.Grant, w.on("", l, 3)))
				w.verdicts(w.allow(w.on("", l, 2)), true)
				w.verdicts(w.allow(w.on("", l, 1)), false)
				w.one(as(algorithms.Reset, w.on("", l, 0)))
				w.verdicts(w.allow(w.on("", l, 10)), true)
			}
		},
	},
	{
		// A change of the burst filled the bucket.
		"gubernator: a changed limit refills",
		"another burst refills nothing, and another algorithm reads no old state",
		func(w *world) {
			for _, a := range buckets() {
				l := a.ten()
				w.take(l, 10)
				w.verdicts(w.allow(w.on("", l.WithBurst(9), 1)), false)
				w.verdicts(w.allow(w.on("", l.WithBurst(8), 0)), false)
				w.verdicts(w.allow(w.on("", l, 1)), false)
				for _, other := range others(l) {
					w.full(w.on("", other.ten(), 0))
				}
				w = w.fresh()
			}
		},
	},
	{
		// A limit of 0, documented as no limit, denied everything. The other limiter panicked.
		"Traefik, throttled: a limit of 0",
		"no limit is an error, and the limit nobody denies everything",
		func(w *world) {
			w.invalid(w.on("", algorithms.Limit{}, 1))
			w.invalid(w.on("", algorithms.TokenBucket(0, time.Second), 1))
			w.verdicts(w.allow(w.on("", algorithms.Nobody(), 1)), false)
		},
	},
	{
		// A count reached 11 of 10 within a window. Sliding counters are approximate, but never beyond their own
		// estimate.
		"limits: a sliding counter's error",
		"all of one window and none of the next exceed no estimate",
		func(w *world) {
			l := algorithms.SlidingWindowCounter(10, time.Minute)
			w.to(30*second - 1)
			w.take(l, 10)
			for at := int64(30 * second); at < 90*second; at += 6 * second {
				w.to(at)
				w.remaining(w.on("", l, 0), (at-30*second)/(6*second))
			}
		},
	},
}
