package limitertest

import (
	"fmt"
	"testing"
	"time"

	"github.com/penstock-go/penstock/algorithms"
)

// runPeers checks that bugs other limiters had are not here. The numbers are those of the project's list of them.
func runPeers(t *testing.T, s Subject) {
	s.run(t, clockPeers)
	s.run(t, chargePeers)
	s.run(t, keyPeers)
}

var clockPeers = []rule{
	{"4.1 TTL ignores burst", "a drained bucket refills at its rate, and not because its key expires", func(w *world) {
		for _, of := range constructors[:2] {
			for step := 1; step <= 60; step += 7 {
				w := w.fresh()
				l := of(10, time.Minute)
				w.take(l, 10)
				w.sleep(time.Duration(step) * time.Second)
				w.remaining(w.on("", l, 0), int64(step/6))
			}
		}
	}},
	{"4.2 late caller writes time back", "two callers whose clocks differ by 100 ms get no more than one", func(w *world) {
		for _, of := range constructors {
			l, admitted := of(10, time.Second), 0
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
	}},
	{"4.3 expiry by a slow caller's clock", "a caller that is two minutes slow is limited, and its keys expire", func(w *world) {
		for _, of := range constructors {
			w := w.fresh()
			l := of(5, time.Second)
			w.take(l, 2)
			w.to(-120 * second)
			for i := range 4 {
				if d := w.take(l, 1); d.Allowed != (i < 3) {
					w.errorf("%v: take %d after the first two: got %s, want 5 in all", l, i, show(d))
				}
				if w.s.TTL != nil && w.s.TTL(w, w.on("", l, 1)) <= 0 {
					w.errorf("%v: got a key that does not expire", l)
				}
			}
		}
	}},
	{"4.4 time as a float", "a fresh key has all but one remaining after one take, at any date and rate", func(w *world) {
		r := newSource(w)
		for i := range 4 * max(10, w.s.traces(w)) {
			l := r.anyLimit()
			w.clock.set(1 + r.Int64N(1<<52))
			c := w.on(fmt.Sprint(i), l, 1)
			if d := w.one(c); !d.Allowed || d.Remaining != l.Burst()-1 {
				w.errorf("%v at %d: got %s, want %d remaining", l, w.clock.instant(), show(d), l.Burst()-1)
			}
		}
	}},
	{"4.5 windows below a second", "windows below a second limit, too", func(w *world) {
		for _, of := range constructors {
			for _, window := range []time.Duration{500 * time.Millisecond, 999 * time.Millisecond, 1500 * time.Millisecond, time.Millisecond, 2 * µs} {
				w := w.fresh()
				l := of(1, window)
				w.take(l, 1)
				w.honestStop(l)
				w.take(l, 1)
				w.honestStop(l)
			}
		}
	}},
	{"4.8 previous window expires early", "the previous window counts through all of the next", func(w *world) {
		l := algorithms.SlidingWindowCounter(60, time.Minute)
		w.take(l, 60)
		for s := range 60 {
			w.to(int64(30+s) * second)
			w.remaining(w.on("", l, 0), int64(s))
		}
	}},
	{"4.13 the clock jumps ahead and back", "after a jump ahead and back nobody is locked out", func(w *world) {
		for _, l := range ten() {
			w.to(3600 * second)
			w.take(l, 10)
			w.to(0)
			d := w.take(l, 1)
			if d.Allowed || d.RetryAfter > 2*time.Minute {
				w.errorf("%v: got %s, want a short wait", l, show(d))
			}
			w.honest(w.on("", l, 1))
		}
	}},
	{"4.39 overstated wait of a sliding counter", "the wait ends as soon as enough of the previous window has rolled away", func(w *world) {
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
	}},
}

var chargePeers = []rule{
	{"4.9 un-count after the roll", "a return after the window has turned gives no free requests", func(w *world) {
		for _, of := range constructors[2:] {
			l := of(5, time.Minute)
			taken := w.allow(w.on("", l, 5))[0]
			w.to(120 * second)
			w.one(back(taken, 5))
			w.take(l, 5)
			if d := w.take(l, 1); d.Allowed || d.Remaining != 0 {
				w.errorf("%v: got %s, want denied", l, show(d))
			}
		}
	}},
	{"4.10 a key without an expiry is stuck", "a key without an expiry has one after the next charge", func(w *world) {
		if w.s.Plant == nil {
			return
		}
		for _, l := range ten() {
			raw := "1763729430000000003"
			switch kindOf(l) {
			case "list":
				raw += " " + raw
			case "zset":
				raw = lyingUnits(3, epoch)
			}
			c := w.on("", l, 1)
			w.s.Plant(w, c, kindOf(l), raw)
			w.remaining(c, 7)
			w.expires(c, w.one(c), injected)
		}
	}},
	{"4.11 an override dies with its bucket", "a limit stands as long as it is asked for, however often another is", func(w *world) {
		for _, of := range constructors {
			base, override := of(3, time.Minute), of(50, time.Minute)
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
	}},
	{"4.15 denied is still charged", "a denied cost is not counted against smaller ones", func(w *world) {
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
	}},
	{"4.16 debt by denials", "denials dig no debt", func(w *world) {
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
	}},
	{"4.17 refund dropped or unclamped", "what is given back is there at the next look, and no more than the limit", func(w *world) {
		for _, l := range ten() {
			taken := w.allow(w.on("", l, 1))[0]
			w.one(back(taken, 1))
			w.full(taken)
			w.one(as(algorithms.Grant, w.on("", l, 5)))
			w.full(taken)
		}
	}},
	{"4.18 cost above the capacity", "a cost that never fits says Never, and Remaining is never above the limit", func(w *world) {
		for _, l := range ten() {
			if d := w.take(l, 11); d.Allowed || d.RetryAfter != algorithms.Never || d.Remaining != 10 {
				w.errorf("%v: got %s, want Never and 10 remaining", l, show(d))
			}
		}
	}},
	{"4.19 mixed costs, several limits", "large and small costs add up, and no limit is charged when a later one denies", func(w *world) {
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
	}},
	{"4.20 remembered denials", "a denial says nothing of smaller costs, nor after a Reset, a Grant or a raise", func(w *world) {
		for i, of := range constructors {
			l := ten()[i]
			w.take(l, 8)
			w.take(l, 5)
			w.verdicts(w.allow(w.on("", l, 2)), true)
			w.verdicts(w.allow(w.on("", l, 1)), false)
			w.verdicts(w.allow(w.on("", of(11, time.Minute), 1)), true)
			w.verdicts(w.allow(w.on("", l, 1)), false)
			w.one(as(algorithms.Grant, w.on("", l, 3)))
			w.verdicts(w.allow(w.on("", l, 2)), true)
			w.verdicts(w.allow(w.on("", l, 1)), false)
			w.one(as(algorithms.Reset, w.on("", l, 0)))
			w.verdicts(w.allow(w.on("", l, 10)), true)
		}
	}},
	{"4.21 a changed limit refills", "another burst refills nothing, and another algorithm reads no old state", func(w *world) {
		for i, l := range ten()[:2] {
			w.take(l, 10)
			w.verdicts(w.allow(w.on("", l.WithBurst(9), 1)), false)
			w.verdicts(w.allow(w.on("", l.WithBurst(8), 0)), false)
			w.verdicts(w.allow(w.on("", l, 1)), false)
			w.full(w.on("", ten()[1+i], 0))
		}
	}},
	{"4.22 a limit of 0", "no limit is a mistake, nobody is nobody, and neither admits anything", func(w *world) {
		w.invalid(w.on("", algorithms.Limit{}, 1))
		w.invalid(w.on("", algorithms.TokenBucket(0, time.Second), 1))
		w.verdicts(w.allow(w.on("", algorithms.Nobody(), 1)), false)
	}},
	{"4.40 a sliding counter's error", "all of one window and none of the next exceed no estimate", func(w *world) {
		l := algorithms.SlidingWindowCounter(10, time.Minute)
		w.to(30*second - 1)
		w.take(l, 10)
		for at := int64(30 * second); at < 90*second; at += 6 * second {
			w.to(at)
			w.remaining(w.on("", l, 0), (at-30*second)/(6*second))
		}
	}},
}

var keyPeers = []rule{
	{"4.33 keys that mean something to the store", "braces, stars and separators in a key are letters like any other", func(w *world) {
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
	}},
	{"4.34 one keyspace for two limiters", "policies with equal keys and windows share no count", func(w *world) {
		for _, l := range ten() {
			a, b := w.on("", l, 3), w.on("", l, 4)
			b.Policy = policy + "2"
			w.allow(a, b)
			w.remaining(a, 7)
			w.remaining(b, 6)
		}
	}},
	{"4.35 paths as keys", "a key is taken as it is, and never cleaned", func(w *world) {
		l := ten()[0]
		for i, k := range []string{"/a", "/a/", "//a", "/a//b", "/a/b", "/A", "/a%2Fb"} {
			w.one(w.on(k, l, int64(i+1)))
		}
		for i, k := range []string{"/a", "/a/", "//a", "/a//b", "/a/b", "/A", "/a%2Fb"} {
			w.remaining(w.on(k, l, 0), int64(10-i-1))
		}
	}},
}
