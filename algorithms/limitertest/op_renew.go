// Holds of concurrent requests: whose units a Return frees, and how long a Renew holds them. Other files check that
// held units count against the limit.

package limitertest

import (
	"testing"
	"time"

	"github.com/penstock-go/penstock/algorithms"
)

func runHolds(t *testing.T, s Subject) {
	s.run(t, holdRules)
	s.runEach(t, renewRules)
}

// renewed returns the Renew of a take.
func renewed(taken algorithms.Check) algorithms.Check {
	taken.Op, taken.Cost = algorithms.Renew, 0
	return taken
}

var two = algorithms.Concurrent(2, time.Minute)

var holdRules = []rule{
	{
		// Both takes are made at one instant, so only their ids tell them apart.
		"returned-once",
		"a Return frees its own take's units, once, whatever else is held",
		func(w *world) {
			a, b := w.allow(w.on("", two, 1))[0], w.allow(w.on("", two, 1))[0] // at one instant
			w.one(back(a, 1))
			for range 3 {
				w.one(back(a, 1))
				w.remaining(b, 1)
			}
			c := w.allow(w.on("", two, 1))[0]
			w.one(back(a, 1))
			w.remaining(c, 0)
			w.one(back(b, 1))
			w.one(back(b, 1))
			w.remaining(c, 1)
			w.one(back(c, 1))
			w.full(c)
		},
	},
	{
		// A caller may return by the receipt of the take again after a part was returned by it. Only units that are
		// still held are freed.
		"parts-once",
		"a part that was returned is not returned by an older receipt again",
		func(w *world) {
			l := algorithms.Concurrent(10, time.Minute)
			first := w.allow(w.on("", l, 5))[0]
			rest := w.allow(back(first, 2))[0]
			w.one(back(first, 2))
			w.remaining(first, 7)
			w.one(back(rest, 3))
			w.full(first)
			w.one(back(first, 5))
			w.full(first)
		},
	},
	{
		// The holder has died, or is later than the hold allows.
		"ends-by-itself",
		"units that nobody returns are free when the hold has passed, and a late Return frees no others",
		func(w *world) {
			dead := w.allow(w.on("", two, 2))[0]
			w.to(60*second - 1)
			w.remaining(dead, 0)
			w.to(60 * second)
			w.full(dead)
			next := w.allow(w.on("", two, 2))[0]
			w.one(back(dead, 2))
			w.remaining(next, 0)
		},
	},
	{
		// The other take is not renewed, so it ends after a minute.
		"renew",
		"a Renew begins the hold again, and the receipt stays good",
		func(w *world) {
			taken, dead := w.allow(w.on("", two, 1))[0], w.allow(w.on("", two, 1))[0]
			for i := range int64(5) {
				w.to((i + 1) * 50 * second)
				got := w.one(renewed(taken))
				if !got.Allowed || got.Receipt != taken.Decision.Receipt || got.ResetAfter != time.Minute ||
					got.Source != w.s.Source {
					w.errorf("renewal %d: got %s, want a minute to go, and the receipt as it was", i, show(got))
				}
			}
			w.remaining(dead, 1)
			w.to(310*second - 1)
			w.remaining(taken, 1)
			w.one(back(taken, 1))
			w.full(taken)
		},
	},
	{
		// The request runs, so it is counted even if other requests hold the limit by now. The cap bounds the memory.
		"renew-late",
		"a Renew holds units again that have ended by themselves, beyond the limit, but not beyond twice the limit",
		func(w *world) {
			late := w.allow(w.on("", two, 2))[0]
			w.to(60 * second)
			later := w.allow(w.on("", two, 2))[0]
			w.to(61 * second)
			w.one(renewed(late))
			if d := w.take(two, 0); d.Allowed || d.RetryAfter != 59*time.Second {
				w.errorf("got %s, want a key in debt for the 59 s that the later take has to go", show(d))
			}
			third := w.allow(w.on("other", two, 2))[0]
			third.Key = late.Key // it does not fit any more
			w.one(renewed(third))
			if d := w.take(two, 1); d.ResetAfter != time.Minute || d.RetryAfter != time.Minute {
				w.errorf("got %s, want what was renewed to end in a minute", show(d))
			}
			w.one(back(late, 2))
			w.remaining(late, 0)
			w.one(back(later, 1))
			w.remaining(late, 1)
		},
	},
	{
		// Five are taken and four returned. The remaining unit is held until 50 s + 60 s.
		"renew-part",
		"returned units of a take are not renewed",
		func(w *world) {
			l := algorithms.Concurrent(10, time.Minute)
			taken := w.allow(w.on("", l, 5))[0]
			taken = w.allow(back(taken, 4))[0]
			taken.Op = algorithms.Take
			w.to(50 * second)
			w.one(renewed(taken))
			w.remaining(taken, 9)
			w.to(60 * second)
			w.remaining(taken, 9)
			w.to(110 * second)
			w.full(taken)
		},
	},
	{
		// The first take is renewed at 20 s, and ends at 80 s. The second one was made at 10 s, and ends at 70 s.
		"renew-keeps-order",
		"the wait is for the units that end first, whoever took them first",
		func(w *world) {
			first := w.allow(w.on("", two, 1))[0]
			w.to(10 * second)
			w.take(two, 1)
			w.to(20 * second)
			w.one(renewed(first))
			if d := w.take(two, 1); d.RetryAfter != 50*time.Second || d.ResetAfter != time.Minute {
				w.errorf("got %s, want 50 s until the second take ends, and 60 s until the renewed one does", show(d))
			}
		},
	},
	{
		"renew-expires",
		"the key of a renewed unit lives as long as the hold",
		func(w *world) {
			taken := w.allow(w.on("", two, 1))[0]
			w.to(50 * second)
			if d := w.one(renewed(taken)); w.s.Store != nil {
				w.expires(taken, d, injected)
			}
		},
	},
}

var renewRules = []eachRule{
	{
		// A return that has overtaken the renewal frees the take for good.
		"renew-nothing",
		"a Renew of no take, or of a returned one, changes nothing",
		func(w *world, l algorithms.Limit) {
			taken := w.allow(w.on("", l, 4))[0]
			gone := w.allow(back(taken, 4))[0]
			w.take(l, 3)
			before := w.peek(taken)
			for _, c := range []algorithms.Check{renewed(gone), renewed(w.on("", l, 9))} {
				if d := w.one(c); !d.Allowed || figuresOf(d) != before || d.Receipt != (algorithms.Receipt{}) {
					w.errorf("got %s, want allowed with %+v and no receipt", show(d), before)
				}
			}
			w.unchanged(taken, before)
		},
	},
	{
		// Callers need not know which limits hold.
		"renew-others",
		"a Renew under any other limit does nothing, and keeps the receipt",
		func(w *world, l algorithms.Limit) {
			if algorithmOf(l).family == held {
				return
			}
			taken := w.allow(w.on("", l, 4))[0]
			w.sleep(time.Second)
			before := w.peek(taken)
			if d := w.one(renewed(taken)); !d.Allowed || figuresOf(d) != before ||
				d.Receipt != taken.Decision.Receipt {
				w.errorf("got %s, want allowed with %+v, and the receipt of 4 units", show(d), before)
			}
			w.unchanged(taken, before)
		},
	},
	{
		"renew-other-backend",
		"a Renew of another backend's take is dropped, and keeps its receipt",
		func(w *world, l algorithms.Limit) {
			if w.s.Foreign == nil {
				return
			}
			c := renewed(w.on("", l, 0))
			c.Decision.Receipt = w.foreign(l)
			want := c.Decision.Receipt
			if d := w.one(c); !d.Allowed || d.Source != algorithms.Undecided || d.Receipt != want {
				w.errorf("got %s, want allowed, undecided, and the receipt", show(d))
			}
			w.full(c)
		},
	},
}
