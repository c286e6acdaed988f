// Limits that change on live keys. A limit travels with every check, so units in use must carry over.

package limitertest

import (
	"time"

	"github.com/penstock-go/penstock/algorithms"
)

var limitRules = []rule{
	// Ten are in use, so 25 - 10 fit.
	{"a raised limit admits at once what it adds", every, func(w *world, l algorithms.Limit) {
		w.take(l, 10)
		raised := algorithmOf(l).of(25, time.Minute)
		if d := w.take(raised, 15); !d.Allowed || d.Remaining != 0 {
			w.errorf("got %s, want 15 more allowed and no more", show(d))
		}
		w.honest(w.on("", raised, 1))
	}},
	// Seven are in use under a limit of five: no cost fits, not even 0.
	{"under a lowered limit units in use still count, and are waited off", every, func(w *world, l algorithms.Limit) {
		w.take(l, 7)
		lower := algorithmOf(l).of(5, time.Minute)
		for _, cost := range []int64{0, 1, 5} {
			if d := w.take(lower, cost); d.Allowed || d.Remaining != 0 || d.RetryAfter == algorithms.Never {
				w.errorf("cost %d: got %s, want denied for a while", cost, show(d))
			}
		}
		w.honest(w.on("", lower, 1))
	}},
	// Of 10 000 units in use a limit of 3 counts at most two bursts, so that a lowered limit locks nobody out for
	// long.
	{"a limit lowered far is waited off in at most two of its bursts", every, func(w *world, l algorithms.Limit) {
		a := algorithmOf(l)
		w.take(a.of(10_000, time.Minute), 10_000)
		lower := a.of(3, time.Minute)
		d := w.take(lower, 1)
		if d.Allowed || d.RetryAfter > 2*lower.Window() {
			w.errorf("got %s, want a wait of at most two windows", show(d))
		}
		w.honest(w.on("", lower, 1))
	}},
	// Denials under the lower limit write nothing, so the cap of its debt cuts nothing off.
	{"a lowered limit that admits no request forgets nothing", every, func(w *world, l algorithms.Limit) {
		a := algorithmOf(l)
		w.take(l, 9)
		before := w.peek(w.on("", l, 0))
		w.take(a.of(2, time.Minute), 1)
		w.take(a.of(2, time.Hour), 0)
		if got := w.peek(w.on("", l, 0)); got != before {
			w.errorf("got %+v, want the state untouched, %+v", got, before)
		}
	}},
	{"figures are honest under a limit that has just changed", every, func(w *world, l algorithms.Limit) {
		a := algorithmOf(l)
		r := newSource(w)
		for range w.s.traces(w) / 2 {
			w := w.fresh()
			w.disturb(r, w.on("", r.limit(a), 0))
			w.disturb(r, w.on("", r.limit(a), 0))
			l := r.limit(a)
			w.audit(w.on("", l, 0), w.take(l, r.cost(l)))
			w.honest(w.on("", l, r.cost(l)))
		}
	}},

	{"the limit of nobody forgets nothing", every, func(w *world, l algorithms.Limit) {
		w.take(l, 6)
		w.take(algorithms.Nobody(), 1)
		w.one(as(algorithms.Reset, w.on("", algorithms.Nobody(), 0)))
		w.remaining(w.on("", l, 0), 4)
	}},
	// The algorithm is part of the stored key, so no algorithm reads a state that it cannot interpret.
	{"another algorithm is another key: it reads no state of the first, and leaves it alone", nil, func(w *world, _ algorithms.Limit) {
		hundred := limits(every(), 100, time.Minute)
		for i, l := range hundred {
			w.full(w.on("", l, 0))
			w.take(l, int64(i+1))
		}
		for i, l := range hundred {
			w.remaining(w.on("", l, 0), int64(100-i-1))
		}
	}},
	// One unit has refilled after 6 s, so 14 - 9 fit. Under the burst of 3 the state is cut to 6 units. 4 of them
	// must drain: 24 s.
	{"a raised burst admits at once what it adds, at the same rate", buckets, func(w *world, l algorithms.Limit) {
		w.take(l, 10)
		w.sleep(6 * time.Second)
		if d := w.take(l.WithBurst(14), 5); !d.Allowed || d.Remaining != 0 {
			w.errorf("got %s, want 1 + 4 units allowed", show(d))
		}
		if d := w.take(l.WithBurst(3), 1); d.Allowed || d.RetryAfter != 24*time.Second {
			w.errorf("got %s, want the 14 read as 6, and 4 of them waited off in 24 s", show(d))
		}
	}},
	// After a second, 10 per 10 s has refilled one unit, 10 per second all, and 10 per hour none.
	{"a changed rate prices the time since the state's instant", buckets, func(w *world, l algorithms.Limit) {
		a := algorithmOf(l)
		w.take(l, 10)
		w.sleep(time.Second)
		w.remaining(w.on("", a.of(10, 10*time.Second), 0), 1)
		w.remaining(w.on("", a.of(10, time.Second), 0), 10)
		w.remaining(w.on("", a.of(10, time.Hour), 0), 0)
	}},
	// One unit per minute, taken at 0. The second take at 59 s leaves the state's instant at 0. At 60 per minute, 59
	// of the two units would have drained since then.
	{"a raised rate also counts for the time since the state's instant", buckets, func(w *world, l algorithms.Limit) {
		a := algorithmOf(l)
		slow := a.of(1, time.Minute).WithBurst(10)
		w.take(slow, 1)
		w.sleep(59 * time.Second)
		w.take(slow, 1)
		w.remaining(w.on("", slow, 0), 8)
		w.remaining(w.on("", a.of(60, time.Minute).WithBurst(10), 0), 10)
	}},
	// The state's instant is the last take, or up to one unit's time at the old rate before it.
	{"a raise gives at most the units in use, and at most (raise - t) × (new rate - old rate)", nil, func(w *world, _ algorithms.Limit) {
		r := newSource(w)
		for range w.s.traces(w) {
			a := pick(r, buckets()...)
			burst := 1 + r.Int64N(100)
			slow := a.of(1+r.Int64N(burst), pick(r, time.Second, time.Minute, time.Hour)).WithBurst(burst)
			unit := slow.Window() / time.Duration(slow.Requests())
			for range 4 {
				w.take(slow, 1+r.Int64N(burst))
				w.move(time.Duration(r.Int64N(unit.Microseconds()+1)) * µs)
			}
			if d := w.take(slow, 1); !d.Allowed {
				w = w.fresh()
				continue
			}
			later := time.Duration(r.Int64N(2*unit.Microseconds()+1)) * µs
			w.sleep(later)
			before := w.peek(w.on("", slow, 0)).Remaining
			fast := a.of(slow.Requests()*(1+r.Int64N(100)), slow.Window()).WithBurst(burst)
			most := int64(1 + (later+unit+µs).Seconds()*float64(fast.Requests()-slow.Requests())/slow.Window().Seconds())
			if after := w.peek(w.on("", fast, 0)).Remaining; after < before || after > before+most {
				w.errorf("%v to %v: got %d remaining, want %d and at most %d more", slow, fast, after, before, most)
			}
			w = w.fresh()
		}
	}},
}
