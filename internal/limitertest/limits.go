package limitertest

import (
	"testing"
	"time"

	"github.com/penstock-go/penstock/algorithms"
)

// runLimits checks limits that change on live keys.
func runLimits(t *testing.T, s Subject) {
	for i := range constructors {
		for _, r := range limitRules {
			t.Run(ten()[i].Algorithm().String()+" "+r.name, func(t *testing.T) {
				t.Parallel()
				r.run(s.world(t, r.rule), constructors[i])
			})
		}
	}
	s.run(t, otherLimitRules)
}

var limitRules = []struct {
	name, rule string
	run        func(w *world, of func(int64, time.Duration) algorithms.Limit)
}{
	{"raise", "a raised limit admits at once what it adds", func(w *world, of func(int64, time.Duration) algorithms.Limit) {
		w.take(of(10, time.Minute), 10)
		if d := w.take(of(25, time.Minute), 15); !d.Allowed || d.Remaining != 0 {
			w.errorf("got %s, want 15 more allowed and no more", show(d))
		}
		w.honest(w.on("", of(25, time.Minute), 1))
	}},
	{"lower", "under a lowered limit units in use still count, and are waited off", func(w *world, of func(int64, time.Duration) algorithms.Limit) {
		w.take(of(10, time.Minute), 7)
		lower := of(5, time.Minute)
		for _, cost := range []int64{0, 1, 5} {
			if d := w.take(lower, cost); d.Allowed || d.Remaining != 0 || d.RetryAfter == algorithms.Never {
				w.errorf("cost %d: got %s, want denied for a while", cost, show(d))
			}
		}
		w.honest(w.on("", lower, 1))
	}},
	{"lower-far", "a limit lowered far is waited off in at most two of its bursts", func(w *world, of func(int64, time.Duration) algorithms.Limit) {
		w.take(of(10_000, time.Minute), 10_000)
		lower := of(3, time.Minute)
		d := w.take(lower, 1)
		if d.Allowed || d.RetryAfter > 2*time.Minute {
			w.errorf("got %s, want a wait of at most 2 min", show(d))
		}
		w.honest(w.on("", lower, 1))
	}},
	{"there-and-back", "a lowered limit that nobody was admitted under forgets nothing", func(w *world, of func(int64, time.Duration) algorithms.Limit) {
		l := of(10, time.Minute)
		w.take(l, 9)
		before := w.peek(w.on("", l, 0))
		w.take(of(2, time.Minute), 1)
		w.take(of(2, time.Hour), 0)
		if got := w.peek(w.on("", l, 0)); got != before {
			w.errorf("got %+v, want %+v", got, before)
		}
	}},
	{"random", "figures are honest under a limit that has just changed", func(w *world, of func(int64, time.Duration) algorithms.Limit) {
		r := newSource(w)
		for range w.s.traces(w) / 2 {
			w := w.fresh()
			w.disturb(r, "", r.limit(of))
			w.disturb(r, "", r.limit(of))
			l := r.limit(of)
			w.audit(w.on("", l, 0), w.take(l, r.cost(l)))
			w.honest(w.on("", l, r.cost(l)))
		}
	}},
}

var otherLimitRules = []rule{
	{"nobody-for-a-while", "the limit of nobody forgets nothing", func(w *world) {
		for _, l := range ten() {
			w.take(l, 6)
			w.take(algorithms.Nobody(), 1)
			w.one(as(algorithms.Reset, w.on("", algorithms.Nobody(), 0)))
			w.remaining(w.on("", l, 0), 4)
		}
	}},
	{"another-algorithm", "another algorithm is another key: it reads no state of the first, and leaves it alone", func(w *world) {
		for i, l := range ten() {
			w.full(w.on("", l, 0))
			w.take(l, int64(i+1))
		}
		for i, l := range ten() {
			w.remaining(w.on("", l, 0), int64(10-i-1))
		}
	}},
	{"burst", "a raised burst admits at once what it adds, at the same rate", func(w *world) {
		for _, l := range ten()[:2] {
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
	}},
	{"rate", "a changed rate prices the time since the last write", func(w *world) {
		for _, of := range constructors[:2] {
			w.take(of(10, time.Minute), 10)
			w.sleep(time.Second)
			w.remaining(w.on("", of(10, 10*time.Second), 0), 1)
			w.remaining(w.on("", of(10, time.Second), 0), 10)
			w.remaining(w.on("", of(10, time.Hour), 0), 0)
			w = w.fresh()
		}
	}},
}
