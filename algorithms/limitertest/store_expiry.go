// The contents of the store, and their time to live.

package limitertest

import (
	"slices"
	"testing"
	"time"

	"github.com/penstock-go/penstock/algorithms"
)

func runStore(t *testing.T, s Subject) {
	if s.Store == nil {
		return
	}
	s.run(t, storeRules)
}

// A key may live longer than its state: by rounding and a margin, and with a caller's clock by the tolerance for late
// callers. Under injected clocks keys live for at least a minute of real time.
const (
	margin      = 2*time.Millisecond + time.Microsecond
	lateCallers = 100 * time.Millisecond
	injected    = time.Minute
	century     = 100 * 365 * 24 * time.Hour
	leapDays    = 26 * 24 * time.Hour
)

// spare is by how much the key of a bucket may outlive its state if the bucket is used again.
const spare = 20 * time.Second

// expires wants that a key in the store lives at least as long as its state matters, and hardly longer. It may live on
// for as long as an earlier check made it.
func (w *world) expires(
	c algorithms.Check, d algorithms.Decision, least time.Duration, earlier ...algorithms.Decision,
) {
	w.Helper()
	began := time.Now()
	ttl := w.s.Store.TTL(w, c)
	spent := time.Since(began) + time.Second // since the write
	if d.ResetAfter == 0 {
		return // the key is gone, or no call has looked at it since it was full
	}
	want := min(d.ResetAfter, century)
	if ttl <= 0 || ttl+spent < max(want, least) {
		w.errorf("%v %d under %v: got a key that lives for %v, want at least its ResetAfter, %v",
			c.Op, c.Cost, c.Limit, ttl, want)
	}
	if c.Op != algorithms.Take {
		return // earlier charges may keep the key longer
	}
	most := d.ResetAfter
	for _, e := range earlier {
		most = max(most, e.ResetAfter)
	}
	most = min(most, century+leapDays)
	if algorithmOf(c.Limit).family == bucket && len(earlier) > 0 {
		most += spare
	}
	if most = max(least, most) + margin + lateCallers; ttl > most {
		w.errorf("%v %d under %v: got a key that lives for %v, want at most %v", c.Op, c.Cost, c.Limit, ttl, most)
	}
}

// storeRules hold for every algorithm under an injected clock, so times to live have a least value.
var storeRules = []rule{
	// The limits and ops are random. Grants shorten a state, which must not shorten the life of the rest.
	{"every key that is written expires, when it is full and not before", every, func(w *world, ten algorithms.Limit) {
		r := newSource(w)
		for range max(2, w.s.traces(w)/5) {
			w := w.fresh()
			l := r.limit(algorithmOf(ten))
			var earlier []algorithms.Decision
			for range 8 {
				c := w.on("", l, 1+r.Int64N(l.Burst()))
				c.Op = pick(r, algorithms.Take, algorithms.Take, algorithms.Take,
					algorithms.Force, algorithms.Grant, algorithms.Reset)
				d := w.one(c)
				if d.Allowed {
					w.expires(c, d, injected, earlier...)
				}
				earlier = append(earlier, d)
				w.move(max(0, r.pause(l)))
			}
		}
	}},
	// An attacker with random keys must not fill the store.
	{"a denial, a peek or a Grant makes no key", every, func(w *world, l algorithms.Limit) {
		for _, c := range []algorithms.Check{
			w.on("", l, 11), w.on("", l, 0),
			as(algorithms.Grant, w.on("", l, 3)), as(algorithms.Return, w.on("", l, 3)),
			as(algorithms.Reset, w.on("", l, 0)),
		} {
			w.one(c)
			w.empty(w.on("", l, 0))
		}
		w.allow(w.on("", l, 3), w.never())
		w.empty(w.on("", l, 0))
	}},
	// Denials are the bulk of the traffic in an attack. They must cost no replication and no disk.
	{"a denial changes neither the state nor how long it lives", every, func(w *world, l algorithms.Limit) {
		c := w.on("", l, 10)
		w.one(c)
		text, ttl := w.s.Store.Stored(w, c), w.s.Store.TTL(w, c)
		w.sleep(7 * time.Second)
		for range 5 {
			w.one(c)
		}
		if got := w.s.Store.Stored(w, c); got != text {
			w.errorf("got %q stored, want %q", got, text)
		}
		if got := w.s.Store.TTL(w, c); got > ttl {
			w.errorf("got a key that lives for %v, want no more than %v", got, ttl)
		}
	}},
	// The call ends with the faster limit, and with the slower one.
	{"a key that several limits of one call charge lives for the slowest", every, func(w *world, l algorithms.Limit) {
		slow := algorithmOf(l).of(10, 3*time.Hour)
		for range 5 {
			for _, limits := range [][]algorithms.Limit{{slow, l}, {l, slow}, {l, slow, l}} {
				w := w.fresh()
				var call []algorithms.Check
				for _, limit := range limits {
					call = append(call, w.on("", limit, 1))
				}
				call = w.allow(call...)
				check := call[slices.Index(limits, slow)]
				check.Op = algorithms.Force // other charges keep the key longer
				w.expires(check, w.one(w.on("", slow, 0)), injected)
			}
		}
	}},
	// A repair moves the state to the present, so the time to live that it had is too short or too long. Under the
	// limit of a second the key lives for a minute, because the clock is injected.
	{"a repair under a longer window lets the key live for that window", every, func(w *world, l algorithms.Limit) {
		a := algorithmOf(l)
		w.one(w.on("", a.of(5, time.Second), 5))
		w.to(-10 * second)
		c := w.on("", a.of(5, time.Hour), 1)
		d := w.one(c)
		if d.Allowed {
			w.errorf("got %s, want a denial", show(d))
		}
		w.expires(c, d, injected, d)
	}},

	{"a state that takes longer than a hundred years to fill expires all the same", nil, func(w *world, _ algorithms.Limit) {
		l := algorithms.TokenBucket(1, 365*24*time.Hour).WithBurst(1_000_000)
		c := w.on("", l, 1_000_000)
		w.expires(c, w.one(c), injected)
	}},
	{"the key of a renewed unit lives as long as the hold", nil, func(w *world, _ algorithms.Limit) {
		c := w.allow(w.on("", the("concurrent").ten(), 1))[0]
		w.to(50 * second)
		c.Op, c.Cost = algorithms.Renew, 0
		w.expires(c, w.one(c), injected)
	}},
	// The store's own clock is in use, so keys do not live for the minute that injected clocks need.
	{"with the real clock a key is there until it is full, and gone soon after", nil, func(w *world, _ algorithms.Limit) {
		w.limiter = w.s.New(w, nil)
		for _, a := range every() {
			for _, l := range []algorithms.Limit{
				a.of(5, 70*time.Millisecond), a.of(1, 30*time.Second), a.of(7, 30*time.Second),
				a.of(1, 30*time.Second-µs),
			} {
				w := w.fresh()
				c := w.on("", l, 1)
				began := time.Now()
				d := w.one(c)
				ttl := w.s.Store.TTL(w, c)
				spent := time.Since(began)
				if ttl > d.ResetAfter+margin || ttl+spent < d.ResetAfter {
					w.errorf("%v: got a key that lives for %v after %v, want its ResetAfter, %v",
						l, ttl, spent, d.ResetAfter)
				}
				if l.Window() > time.Second {
					continue
				}
				time.Sleep(d.ResetAfter + margin + 5*time.Millisecond)
				w.empty(c)
			}
		}
	}},
}
