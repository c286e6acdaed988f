// Random histories of pairs: against the same decisions made by several calls, and the promises of a shared limit.

package limitertest

import (
	"fmt"
	"testing"
	"time"

	"github.com/penstock-go/penstock/algorithms"
)

func (s Subject) runRandomPairs(t *testing.T) {
	for _, test := range []struct {
		name, rule string
		run        func(w *world, r source)
	}{
		{"otherwise", "a TakeElse decides and charges as two calls, the second one only if the first is denied", (*world).tryOtherwise},
		{"reserved", "a TakeReserved decides and charges as a call of two takes with twice the burst, or else as a take alone", (*world).tryReserved},
		{"honest", "a pair is denied one µs before the RetryAfter of its second take, and allowed at it", (*world).honestPair},
		{"shared", "a limit that tenants share admits at most twice its burst, and what comes back, in every interval, and " +
			"every request within a share, if the shares add up to no more than the limit", (*world).tryShared},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			r := newSource(t)
			w := s.world(t, test.rule)
			for range s.traces(t) {
				if test.run(w.fresh(), r); t.Failed() {
					return
				}
			}
		})
	}
}

// tryOtherwise plays a history of a TakeElse, and the same by calls of one take on other keys.
func (w *world) tryOtherwise(r source) {
	w.Helper()
	limits := [2]algorithms.Limit{r.anyLimit(), r.anyLimit()}
	for range 8 {
		first, second := w.on("a", limits[0], r.cost(limits[0])), w.on("b", limits[1], r.cost(limits[1]))
		call := w.allow(otherwise(first, second)...)
		first.Key, second.Key = first.Key+"2", second.Key+"2"
		alone := [2]algorithms.Decision{w.one(first)}
		passes := alone[0].Allowed
		if !passes {
			alone[1] = w.one(second)
			passes = alone[1].Allowed
		}
		if algorithms.Allowed(call) != passes {
			w.errorf("%s: got allowed %t, want %t", text(call), !passes, passes)
		}
		var charged [2]algorithms.Check
		for i, d := range alone {
			c := [2]algorithms.Check{first, second}[i]
			if got, want := call[i].Decision.Receipt.Units(), d.Receipt.Units(); got != want {
				w.errorf("check %d of %s: got %d units charged, want %d", i, text(call), got, want)
			}
			if got, want := w.peek(call[i]), w.peek(c); got != want {
				w.errorf("check %d of %s: got %+v afterwards, want %+v", i, text(call), got, want)
			}
			c.Decision = d
			charged[i] = c
		}
		w.move(r.pause(limits[r.IntN(2)]))
		if r.IntN(4) == 0 {
			for i, c := range charged {
				if units := c.Decision.Receipt.Units(); units > 0 {
					part := 1 + r.Int64N(units)
					w.one(back(call[i], part))
					w.one(back(c, part))
				}
			}
		}
	}
}

// tryReserved plays a history of a TakeReserved of a token bucket, and the same by other calls on other keys: the reserve
// is a bucket with twice the burst.
func (w *world) tryReserved(r source) {
	w.Helper()
	share, of := r.anyLimit(), r.limit(the("token-bucket"))
	twice := of.WithBurst(2 * of.Burst())
	if twice.Validate() != nil {
		return
	}
	for range 8 {
		first, second := w.on("a", share, r.cost(share)), w.on("b", of, r.cost(of))
		call := w.allow(reserved(first, second)...)
		first.Key, second.Key = first.Key+"2", second.Key+"2"
		var passes bool
		if !w.probe(first).Allowed || second.Cost > of.Burst() {
			passes = w.one(second).Allowed
		} else {
			wide := second
			wide.Limit = twice
			passes = algorithms.Allowed(w.allow(first, wide))
		}
		if algorithms.Allowed(call) != passes {
			w.errorf("%s: got allowed %t, want %t", text(call), !passes, passes)
		}
		for i, c := range []algorithms.Check{first, second} {
			if got, want := w.peek(call[i]), w.peek(c); got != want {
				w.errorf("check %d of %s: got %+v afterwards, want %+v", i, text(call), got, want)
			}
		}
		w.move(r.pause(of))
	}
}

// honestPair asks a random pair, among other takes, on keys in random states.
func (w *world) honestPair(r source) {
	w.Helper()
	first, second, third := r.anyLimit(), r.anyLimit(), r.anyLimit()
	op := pick(r, algorithms.TakeReserved, algorithms.TakeElse)
	if op == algorithms.TakeReserved {
		second = r.limit(pick(r, reserving()...))
	}
	for i, l := range []algorithms.Limit{first, second, third} {
		w.disturb(r, fmt.Sprint(i), l)
	}
	if r.IntN(2) == 0 { // into the reserve
		w.one(as(algorithms.Force, w.on("1", second, 1+r.Int64N(second.Burst()))))
	}
	call := []algorithms.Check{w.on("0", first, r.cost(first)), w.on("1", second, r.cost(second))}
	call[1].Op = op
	if r.IntN(3) == 0 {
		call = append(call, w.on("2", third, min(r.cost(third), third.Burst())))
	}
	w.honest(call...)
}

// tryShared has tenants, and a hog above its share, use one token bucket or one fixed window.
func (w *world) tryShared(r source) {
	w.Helper()
	tenants, rate, shareBurst := 1+r.Int64N(5), 1+r.Int64N(50), 1+r.Int64N(4)
	of := algorithms.TokenBucket(rate*tenants, time.Second).WithBurst(shareBurst*tenants + r.Int64N(3))
	share := algorithms.TokenBucket(rate, time.Second).WithBurst(shareBurst)
	perSecond := rate * tenants
	more := func(from, to int64) int64 { return ((to-from)*perSecond + second - 1) / second }
	if r.IntN(2) == 0 {
		share, of = algorithms.FixedWindow(shareBurst, 100*time.Millisecond), algorithms.FixedWindow(shareBurst*tenants, 100*time.Millisecond)
		perSecond = 10 * shareBurst * tenants
		more = func(from, to int64) int64 { return (to/(second/10) - from/(second/10)) * of.Requests() }
	}
	type admission struct{ at, units int64 }
	var admitted []admission
	for range 60 {
		tenant := r.Int64N(tenants)
		if r.IntN(2) == 0 {
			tenant = 0 // the hog
		}
		cost := 1 + r.Int64N(shareBurst)
		call := w.allow(reserved(w.on(fmt.Sprint("share", tenant), share, cost), w.on("", of, cost))...)
		if call[0].Decision.Allowed && !algorithms.Allowed(call) {
			w.errorf("%s: got %s, want a request within its share admitted", text(call), show(call[1].Decision))
		}
		if algorithms.Allowed(call) {
			admitted = append(admitted, admission{w.clock.instant(), cost})
		}
		w.sleep(time.Duration(r.Int64N(1+second/perSecond)) * µs)
	}
	for i := range admitted {
		var units int64
		for _, a := range admitted[i:] {
			units += a.units
			if most := 2*of.Burst() + more(admitted[i].at, a.at); units > most {
				w.errorf("%v: got %d units in %d µs, want at most %d", of, units, a.at-admitted[i].at, most)
			}
		}
	}
}
