// Bugs of other limiters that these limiters do not have. Most of them break a rule that stands in another file:
//
//	Traefik: the TTL ignores the burst, so a drained bucket is full again when its key expires    Store, Definitions
//	rueidislimiter: a caller with a slow clock writes keys that have expired already              Vectors, Store
//	go-redisstore: windows are rounded down to whole seconds, so half a second limits nothing     Definitions, Honesty
//	PostHog: the count of the previous window expires in the middle of the next one               Definitions
//	GCRA limiters: after a jump ahead and back of the clock, a client is locked out               Honesty, Vectors
//	redis_rate: instants as doubles in seconds are too large for exact fractions since July 2025  Definitions
//	mennanov/limiters: a wait lasts until the previous window has left altogether                 Honesty, Definitions
//	limits: a sliding counter admits 11 of 10 within a window                                     Vectors, Definitions
//	express-rate-limit: a decrement after the window has turned makes the counter negative        Definitions
//	redis_rate: a refund is answered and not stored                                               Definitions
//	gubernator: a refund credits more than the limit, and a changed limit refills                 Definitions, Limits
//	ulule/limiter: a key that has lost its expiry counts for ever                                 Corrupt
//	go-redisstore: the next request with the usual limit replaces an override                     Limits
//	rueidislimiter, envoyproxy/ratelimit, Kong: a denial is charged                               Definitions
//	upstash: each denial digs the debt deeper                                                     Definitions
//	redis_rate, throttled: a cost above the capacity gets a wait, or Remaining above the limit    Definitions
//	limits, caddy-ratelimit: a small cost passes after a large one; limits are charged one by one Calls
//	Traefik, throttled: a limit of 0 denies everything, or panics                                 Invalid
//	httprate-redis: two limiters share one counter                                                Keys
//	httprate, throttled, tollbooth: paths are cleaned, so keys that differ are joined             Keys
//
// The others have rules of their own here. A comment names the limiter of each, in the version that was current
// when the rule was written.

package limitertest

import (
	"time"

	"github.com/penstock-go/penstock/algorithms"
)

var peerRules = []rule{
	// Traefik: a late caller writes the time back.
	// The script stored the time of each caller. Two callers whose clocks differed by 100 ms moved the time ahead
	// in turns, and each step refilled the bucket: 109 of 200 requests passed at a burst of 10.
	{"two callers whose clocks differ by 100 ms get no more than one", every, func(w *world, l algorithms.Limit) {
		fast, admitted := algorithmOf(l).of(10, time.Second), 0
		for i := range 100 {
			w.to(int64(i%2) * 100_000)
			if w.take(fast, 1).Allowed {
				admitted++
			}
		}
		if admitted > 11 { // one refills in 100 ms
			w.errorf("%v: got %d of 100 admitted, want at most 11", fast, admitted)
		}
	}},
	// upstash, rate-limiter-flexible: remembered denials.
	// A remembered denial was repeated to requests that would have fit, and survived a reset.
	{"a denial says nothing of smaller costs, nor after a Reset, a Grant or a raise", every, func(w *world, l algorithms.Limit) {
		want := func(l algorithms.Limit, cost int64, allowed bool) {
			w.Helper()
			if d := w.take(l, cost); d.Allowed != allowed {
				w.errorf("%d under %v: got %s, want allowed %t", cost, l, show(d), allowed)
			}
		}
		w.take(l, 8)
		w.take(l, 5)
		want(l, 2, true)
		want(l, 1, false)
		want(algorithmOf(l).of(11, time.Minute), 1, true)
		want(l, 1, false)
		w.one(as(algorithms.Grant, w.on("", l, 3)))
		want(l, 2, true)
		want(l, 1, false)
		w.one(as(algorithms.Reset, w.on("", l, 0)))
		want(l, 10, true)
	}},
	// rueidislimiter, upstash: keys that mean something to the store.
	// Braces in a key changed its slot in the middle of a script, and a reset of the key * reset all keys.
	{"a Reset forgets its own key only, whatever letters it has", every, func(w *world, l algorithms.Limit) {
		keys := []string{"a", "*", "?", "{a}", "}", "a|b", "a:b", "[ab]", "a|*"}
		for i, k := range keys {
			w.one(w.on(k, l, int64(i+1)))
		}
		w.one(as(algorithms.Reset, w.on("*", l, 0)))
		for i, k := range keys {
			if k != "*" {
				w.remaining(w.on(k, l, 0), int64(10-i-1))
			}
		}
		w.full(w.on("*", l, 0))
	}},
}
