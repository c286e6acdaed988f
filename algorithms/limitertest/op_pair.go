// Pairs of takes beyond their definitions: TakeReserved, which shares a limit fairly when it is full, and TakeElse, which
// puts one quota behind another.

package limitertest

import (
	"fmt"
	"testing"
	"time"

	"github.com/penstock-go/penstock/algorithms"
)

func runPairs(t *testing.T, s Subject) {
	s.run(t, pairRules)
	s.runRandom(t, "shared", "a limit that tenants share admits at most twice its burst, and what comes back, in every interval, and "+
		"every request within a share, if the shares add up to no more than the limit", (*world).tryShared)
}

// reserves reports whether an algorithm has a reserve, as documented.
func (a algorithm) reserves() bool {
	return a.name() == "token-bucket" || a.family == window && !a.fades
}

func reserving() []algorithm { return which(algorithm.reserves) }

// reserved returns the pair of a tenant's share and the limit that tenants share.
func reserved(share, of algorithms.Check) []algorithms.Check {
	of.Op = algorithms.TakeReserved
	return []algorithms.Check{share, of}
}

// otherwise returns the pair of two quotas, the second behind the first.
func otherwise(first, second algorithms.Check) []algorithms.Check {
	second.Op = algorithms.TakeElse
	return []algorithms.Check{first, second}
}

var pairRules = []rule{
	{"the second of a pair needs a Take just before it, and both need keys of their own", reserving, func(w *world, l algorithms.Limit) {
		for _, op := range []algorithms.Op{algorithms.TakeReserved, algorithms.TakeElse} {
			a, b, c, second := w.on("a", l, 1), w.on("b", l, 1), w.on("c", l, 1), as(op, w.on("d", l, 1))
			w.invalid(second)
			w.invalid(second, a)
			w.invalid(as(algorithms.Trial, a), second)
			w.invalid(a, as(algorithms.TrialInstead, b), second)
			w.invalid(a, second, as(op, b))
			w.invalid(a, as(op, a))
			w.invalid(a, b, a, second)
			w.invalid(a, second, a)
			w.invalid(w.on("d", l, 1), a, second)
			w.invalid(a, second, w.on("d", l, 1))
			w.invalid(a, second, c, as(op, w.on("d", l, 1)))
			w.invalid(as(algorithms.Force, a), second)
			for _, name := range []string{"a", "b", "c", "d"} {
				w.full(w.on(name, l, 0))
			}
		}
	}},
	{"a limit whose debt is not paid off at its rate has no reserve", every, func(w *world, l algorithms.Limit) {
		if !algorithmOf(l).reserves() {
			w.invalid(reserved(w.on("a", l, 1), w.on("b", l, 1))...)
		}
	}},
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
