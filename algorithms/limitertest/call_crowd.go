// Counts under concurrency, with many callers, several limiters, and the real clock.

package limitertest

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/penstock-go/penstock/algorithms"
)

const (
	callers   = 64 // goroutines
	instances = 4  // limiters that share a store
)

func runConcurrency(t *testing.T, s Subject) {
	for _, a := range every() {
		// Nothing comes back within the test: windows of a year or a month hardly turn.
		l := a.of(300, 365*24*time.Hour)
		for _, r := range crowdRules {
			t.Run(a.name()+" "+r.name, func(t *testing.T) {
				t.Parallel()
				c := s.crowd(t, r.rule)
				c.claimed(c.on("", l, 1)) // here, because only the test's own goroutine may skip it
				r.run(c, l)
			})
		}
	}
}

var crowdRules = []struct {
	name, rule string
	run        func(*crowd, algorithms.Limit)
}{
	{"same", "many callers on one key are admitted exactly as often as the limit says", (*crowd).same},
	{
		"costs", "costs admitted to many callers on one key never exceed the limit, and the rest is denied",
		(*crowd).costs,
	},
	{
		"opposite", "calls that ask for two keys in opposite order never block each other, and charge both or none",
		(*crowd).opposite,
	},
	{
		"otherwise", "many callers of one quota behind another get exactly both, and nothing is charged to both",
		func(c *crowd, l algorithms.Limit) { c.otherwise(l, c.cell) },
	},
	{
		"reserved", "many callers within their shares get exactly twice the burst, and their shares are charged for what they got",
		func(c *crowd, l algorithms.Limit) { c.reserved(l, c.cell) },
	},
	{"returns", "takes and returns of many callers leave exactly the units that were not returned", (*crowd).returns},
}

// A crowd is a world with the real clock and several limiters.
type crowd struct {
	*world
	limiters []algorithms.Limiter
}

func (s Subject) crowd(tb testing.TB, rule string) *crowd {
	c := &crowd{world: s.bare(tb, rule)}
	for range instances {
		c.limiters = append(c.limiters, s.New(tb, nil))
		if !s.Shared {
			break
		}
	}
	c.limiter = c.limiters[0]
	return c
}

// each calls f in many goroutines, and waits for them.
func (c *crowd) each(calls int, f func(ask func(...algorithms.Check) []algorithms.Check, g, i int)) {
	var all sync.WaitGroup
	for g := range callers {
		limiter := c.limiters[g%len(c.limiters)]
		all.Go(func() {
			ask := func(checks ...algorithms.Check) []algorithms.Check {
				if err := limiter.Allow(c.Context(), checks); err != nil {
					c.errorf("%s: got error %v", text(checks), err)
				}
				return checks
			}
			for i := range calls {
				f(ask, g, i)
			}
		})
	}
	all.Wait()
}

// same has all callers take single units of one key, twice as many as the limit has.
func (c *crowd) same(l algorithms.Limit) {
	var admitted atomic.Int64
	c.each(10, func(ask func(...algorithms.Check) []algorithms.Check, _, _ int) {
		if algorithms.Allowed(ask(c.on("", l, 1))) {
			admitted.Add(1)
		}
	})
	if got, want := admitted.Load(), l.Requests(); got != want {
		c.errorf("%v: got %d of %d calls admitted, want %d", l, got, callers*10, want)
	}
	c.remaining(c.on("", l, 0), 0)
}

// costs has all callers take random costs, twice from one key in each call.
func (c *crowd) costs(l algorithms.Limit) {
	c.claimed(c.on("", l, 6), c.on("", l, 1))
	var used atomic.Int64
	c.each(5, func(ask func(...algorithms.Check) []algorithms.Check, _, _ int) {
		cost := rand.Int64N(7)
		checks := ask(c.on("", l, cost), c.on("", l, 1))
		if algorithms.Allowed(checks) {
			used.Add(cost + 1)
		}
		if checks[1].Decision.Remaining < 0 || algorithms.Allowed(checks) && used.Load() > l.Requests() {
			c.errorf("%v: got %d remaining, %d admitted", l, checks[1].Decision.Remaining, used.Load())
		}
	})
	c.remaining(c.on("", l, 0), l.Requests()-used.Load())
}

// opposite has callers lock two keys in both orders, and one key twice. A limiter that locks key by key, in the order of
// the checks, would deadlock.
func (c *crowd) opposite(l algorithms.Limit) {
	c.claimed(c.on("a", l, 1), c.on("b", l, 2), c.on("a", l, 1))
	var a, b atomic.Int64
	c.each(5, func(ask func(...algorithms.Check) []algorithms.Check, g, i int) {
		x, y := c.on("a", l, 1), c.on("b", l, 2)
		call := [][]algorithms.Check{{x, y}, {y, x}, {y, x, y}, {x}}[(g+i)%4]
		if !algorithms.Allowed(ask(call...)) {
			return
		}
		for _, taken := range call {
			if taken.Key == x.Key {
				a.Add(1)
			} else {
				b.Add(2)
			}
		}
	})
	c.remaining(c.on("a", l, 0), l.Requests()-a.Load())
	c.remaining(c.on("b", l, 0), l.Requests()-b.Load())
	if left := l.Requests() - b.Load(); left >= 2 {
		c.errorf("%v: got %d of b left, want it exhausted: %d calls asked", l, left, callers*5)
	}
}

// returns has half of the callers return one of the two units that they took.
func (c *crowd) returns(l algorithms.Limit) {
	c.claimed(as(algorithms.Return, c.on("", l, 1)))
	var used atomic.Int64
	// A bucket that was empty before a take may not credit all of it, so two units stay in use.
	used.Add(c.take(l, 2).Receipt.Units())
	c.each(5, func(ask func(...algorithms.Check) []algorithms.Check, g, _ int) {
		taken := ask(c.on("", l, 2))
		if !algorithms.Allowed(taken) {
			return
		}
		used.Add(2)
		if g%2 == 0 {
			before := taken[0].Decision.Receipt.Units()
			left := ask(back(taken[0], 1))[0].Decision.Receipt.Units()
			used.Add(left - before)
		}
	})
	got, want := l.Burst()-c.peek(c.on("", l, 0)).Remaining, used.Load()
	var more int64
	if kept := algorithmOf(l).kept; kept != nil {
		more = kept(l)
	}
	if got < want || got > want+more {
		c.errorf("%v: got %d units in use, want the %d that were kept, and at most %d more", l, got, want, more)
	}
}

// otherwise has all callers take from one key, and otherwise from another.
func (c *crowd) otherwise(l algorithms.Limit, place func(int, algorithms.Limit, int64) algorithms.Check) {
	c.claimed(otherwise(place(0, l, 1), place(1, l, 1))...)
	var charged [2]atomic.Int64
	c.each(12, func(ask func(...algorithms.Check) []algorithms.Check, _, _ int) {
		call := ask(otherwise(place(0, l, 1), place(1, l, 1))...)
		units := [2]int64{call[0].Decision.Receipt.Units(), call[1].Decision.Receipt.Units()}
		charged[0].Add(units[0])
		charged[1].Add(units[1])
		if sum := units[0] + units[1]; (sum == 1) != algorithms.Allowed(call) {
			c.errorf("%s: got %d units charged and allowed %t", text(call), sum, algorithms.Allowed(call))
		}
	})
	for i := range charged {
		if got := charged[i].Load(); got != l.Requests() {
			c.errorf("%v: got %d units of key %d charged, want all %d", l, got, i, l.Requests())
		}
		c.remaining(place(i, l, 0), 0)
	}
}

// reserved has four tenants, whose shares are as large as the limit, take all of it and its reserve.
func (c *crowd) reserved(l algorithms.Limit, place func(int, algorithms.Limit, int64) algorithms.Check) {
	const burst, tenants = 200, 4
	of := algorithms.TokenBucket(burst, 365*24*time.Hour)
	c.claimed(reserved(place(0, l, 1), place(tenants, of, 1))...)
	var admitted, within [tenants]atomic.Int64
	c.each(12, func(ask func(...algorithms.Check) []algorithms.Check, g, _ int) {
		tenant := g % tenants
		call := ask(reserved(place(tenant, l, 1), place(tenants, of, 1))...)
		if algorithms.Allowed(call) {
			admitted[tenant].Add(1)
			within[tenant].Add(call[0].Decision.Receipt.Units())
		}
	})
	var all int64
	for tenant := range tenants {
		all += admitted[tenant].Load()
		used, want := l.Requests()-c.peek(place(tenant, l, 0)).Remaining, within[tenant].Load()
		// Returns of the calls that were denied may stay charged.
		if used < want || used > want && algorithmOf(l).kept == nil {
			c.errorf("%v: got %d units of tenant %d's share charged, want the %d that were admitted within it", l, used, tenant, want)
		}
	}
	if all != 2*burst {
		c.errorf("%v: got %d units admitted, want %d", of, all, 2*burst)
	}
}
