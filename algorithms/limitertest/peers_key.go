// Bugs of other limiters with keys.

package limitertest

import (
	"github.com/penstock-go/penstock/algorithms"
)

var keyPeers = []rule{
	{
		// Braces in a key changed its slot in the middle of a script, and a reset of the key * reset all keys.
		"rueidislimiter, upstash: keys that mean something to the store",
		"braces, stars and separators in a key are letters like any other",
		func(w *world) {
			for _, l := range ten() {
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
				w = w.fresh()
			}
		},
	},
	{
		// Two limiters with equal keys and windows shared one counter.
		"httprate-redis: one keyspace for two limiters",
		"policies with equal keys and windows share no count",
		func(w *world) {
			for _, l := range ten() {
				a, b := w.on("", l, 3), w.on("", l, 4)
				b.Policy = policy + "2"
				w.allow(a, b)
				w.remaining(a, 7)
				w.remaining(b, 6)
			}
		},
	},
	{
		// Cleaning is the business of the code that makes keys. A limiter that cleans keys again joins keys that
		// differ.
		"httprate, throttled, tollbooth: paths as keys",
		"a key is taken as it is, and never cleaned",
		func(w *world) {
			l := anyTen()
			for i, k := range []string{"/a", "/a/", "//a", "/a//b", "/a/b", "/A", "/a%2Fb"} {
				w.one(w.on(k, l, int64(i+1)))
			}
			for i, k := range []string{"/a", "/a/", "//a", "/a//b", "/a/b", "/A", "/a%2Fb"} {
				w.remaining(w.on(k, l, 0), int64(10-i-1))
			}
		},
	},
}
