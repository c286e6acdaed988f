// Which denials views remember, and when they forget.

package shared

import (
	"context"
	"math/rand/v2"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/penstock-go/penstock/algorithms"
)

// denied is a limiter that has views over a store, and another instance's
// limiter for the same store.
type denied struct {
	*Limiter
	other *Limiter
	store *hooked
}

func newDenied() denied {
	store := &hooked{layer: newStateStore()}
	cache := newViews(1_000, 0, nil)
	cache.next = store
	return denied{&Limiter{top: cache, views: cache}, over(store.layer), store}
}

// A hooked layer runs a function after each answer.
type hooked struct {
	layer
	asked int           // calls
	after func(c *call) // may change the answer; nil: none
}

func (h *hooked) allow(ctx context.Context, c *call) error {
	h.asked++
	err := h.layer.allow(ctx, c)
	if h.after != nil {
		h.after(c)
	}
	return err
}

func (d denied) hits() uint64 { return d.views.denied.Load() }

// keys returns how many keys are remembered.
func (d denied) keys() int {
	var s algorithms.Stats
	d.views.addStats(&s)
	return s.Views.Keys
}

// checkOf returns a take of units under the policy "default".
func checkOf(key string, limit algorithms.Limit, units int64) algorithms.Check {
	return algorithms.Check{Policy: "default", Key: key, Limit: limit, Cost: units}
}

// exhaust takes units until a denial.
func (d denied) exhaust(tb testing.TB, limit algorithms.Limit) {
	tb.Helper()
	for range 20 {
		if !take(tb, d, "usr=1", limit, 1).Allowed {
			return
		}
	}
	tb.Fatalf("%v is not exhausted by 20", limit)
}

func bounded() []algorithms.Limit {
	return []algorithms.Limit{
		algorithms.TokenBucket(7, 10*time.Second).WithBurst(3),
		algorithms.LeakyBucket(7, 10*time.Second).WithBurst(3),
		algorithms.SlidingWindowCounter(3, 10*time.Second),
		algorithms.SlidingWindowLog(3, 10*time.Second),
		algorithms.FixedWindow(3, 10*time.Second),
	}
}

// A remembered denial equals the store's answer for a second, without asking
// it. The store is asked again at the promised instant.
func TestDenialsAreRemembered(t *testing.T) {
	for _, limit := range bounded() {
		synctest.Test(t, func(t *testing.T) {
			d := newDenied()
			d.exhaust(t, limit)
			for i := range 10 {
				got, want := take(t, d, "usr=1", limit, 1), take(t, d.other, "usr=1", limit, 1)
				if got != want || d.hits() != uint64(i+1) {
					t.Errorf("%v after %d00ms: got %+v and %d hits, the store says %+v", limit, i, got, d.hits(), want)
				}
				time.Sleep(100 * time.Millisecond)
			}
			got := take(t, d, "usr=1", limit, 1)
			if d.hits() != 10 {
				t.Errorf("%v after a second: got %d hits, want 10: it is no longer remembered", limit, d.hits())
			}
			time.Sleep(got.RetryAfter - time.Microsecond)
			if got := take(t, d, "usr=1", limit, 1); got.Allowed {
				t.Errorf("%v: admitted before RetryAfter", limit)
			}
			time.Sleep(time.Microsecond)
			if got := take(t, d, "usr=1", limit, 1); !got.Allowed {
				t.Errorf("%v at RetryAfter: got %+v, want it admitted", limit, got)
			}
		})
	}
}

// Memory answers a denial by Nobody like any other: Redis is asked about no
// check of its call.
func TestDenialsByNobodyAreRemembered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDenied()
		for range 3 {
			checks := []algorithms.Check{
				checkOf("usr=1", algorithms.FixedWindow(2, time.Hour), 1), checkOf("usr=1", algorithms.Nobody(), 1),
			}
			if err := d.Allow(t.Context(), checks); err != nil || checks[1].Decision.Allowed || checks[1].Decision.RetryAfter != algorithms.Never {
				t.Errorf("got %+v, %v, want a denial for ever", checks[1].Decision, err)
			}
		}
		if d.hits() != 2 {
			t.Errorf("got %d hits, want all calls except the first", d.hits())
		}
	})
}

func TestDenialsAreForgotten(t *testing.T) {
	limit := algorithms.FixedWindow(2, time.Hour)
	base := checkOf("usr=1", limit, 1)
	with := func(change func(c *algorithms.Check)) algorithms.Check {
		c := base
		change(&c)
		return c
	}
	other := with(func(c *algorithms.Check) { c.Key = "usr=2" })
	tests := []struct {
		name    string
		between algorithms.Check
		again   algorithms.Check
		hit     bool
	}{
		{"nothing", other, base, true},
		{"a grant", with(func(c *algorithms.Check) { c.Op = algorithms.Grant }), base, false},
		{"a reset", with(func(c *algorithms.Check) { c.Op = algorithms.Reset }), base, false},
		{"a return that credits nothing", with(func(c *algorithms.Check) { c.Op = algorithms.Return }), base, true},
		{"a force", with(func(c *algorithms.Check) { c.Op = algorithms.Force }), base, true},
		{"a return of another key", with(func(c *algorithms.Check) { c.Op, c.Key = algorithms.Return, "usr=2" }), base, true},
		{"another limit", other, with(func(c *algorithms.Check) { c.Limit = algorithms.FixedWindow(5, time.Hour) }), false},
		{"a grant that leaves too little", with(func(c *algorithms.Check) { c.Op = algorithms.Grant }), with(func(c *algorithms.Check) { c.Cost = 2 }), true},
		{"a smaller cost", other, with(func(c *algorithms.Check) { c.Cost = 0 }), false},
		{"a larger cost", other, with(func(c *algorithms.Check) { c.Cost = 2 }), true},
		{"beside a trial", other, with(func(c *algorithms.Check) { c.Op = algorithms.Trial }), false},
		{"another policy", other, with(func(c *algorithms.Check) { c.Policy = "other" }), false},
		{"exactly", other, with(func(c *algorithms.Check) { c.Exact = true }), false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newDenied()
				d.exhaust(t, limit)
				for _, c := range []algorithms.Check{tt.between, tt.again} {
					time.Sleep(time.Microsecond)
					if err := d.Allow(t.Context(), []algorithms.Check{c}); err != nil {
						t.Fatal(err)
					}
				}
				if (d.hits() == 1) != tt.hit {
					t.Errorf("got %d hits, want one: %t", d.hits(), tt.hit)
				}
			})
		})
	}
}

func TestOnlySharedDenialsAreRemembered(t *testing.T) {
	for _, source := range []algorithms.Source{algorithms.Local, algorithms.Undecided} {
		synctest.Test(t, func(t *testing.T) {
			d := newDenied()
			d.store.after = func(c *call) { c.items[0].decision.Source = source }
			for range 5 {
				d.exhaust(t, algorithms.FixedWindow(1, time.Hour))
			}
			if d.hits() != 0 || d.keys() != 0 {
				t.Errorf("%v: got %d hits and %d keys, want none", source, d.hits(), d.keys())
			}
		})
	}
}

// The denied checks of a call are remembered. Then its other checks are not
// asked; trials are always counted.
func TestDenialsOfSeveralChecks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDenied()
		wide, narrow := algorithms.FixedWindow(100, time.Hour), algorithms.FixedWindow(2, time.Hour)
		checks := []algorithms.Check{
			{Policy: "default", Key: "usr=1", Limit: wide, Cost: 1},
			{Policy: "narrow", Key: "usr=1", Limit: narrow, Cost: 1},
			{Policy: "narrow", Key: "usr=1", Limit: narrow, Cost: 1},
			{Policy: "shadow", Key: "usr=1", Limit: algorithms.FixedWindow(9, time.Hour), Cost: 1, Op: algorithms.Trial},
		}
		allow := func(checks []algorithms.Check) {
			t.Helper()
			if err := d.Allow(t.Context(), checks); err != nil {
				t.Fatal(err)
			}
		}
		allow(checks[:3])
		allow(checks[:3]) // both of narrow are denied, the second for its need together with the first
		allow(checks[:3])
		if d.hits() != 1 || algorithms.Allowed(checks) || checks[0].Decision != (algorithms.Decision{Allowed: true}) {
			t.Errorf("got %d hits and %+v, want one, and wide not asked", d.hits(), checks[:3])
		}
		allow(checks)
		if d.hits() != 1 || checks[3].Decision.Source != algorithms.Shared {
			t.Errorf("got %d hits and %+v, want the trial counted by the store", d.hits(), checks[3].Decision)
		}
		if got := take(t, d.other, "usr=1", wide, 0); got.Remaining != 99 {
			t.Errorf("got %d remaining of wide, want 99: the first call alone was admitted", got.Remaining)
		}
	})
}

// If there are only takes, the store would confirm every remembered denial,
// also while others take, and at costs that change. (A limit with another
// window may forget units that this one counts: that is seen a second late.)
func TestViewsNeverDeniesMore(t *testing.T) {
	t.Parallel()
	const seed = 7
	synctest.Test(t, func(t *testing.T) {
		rng := rand.New(rand.NewPCG(seed, seed))
		d := newDenied()
		limits := bounded()
		ask := func(l algorithms.Limiter, c algorithms.Check) algorithms.Decision {
			checks := []algorithms.Check{c}
			if err := l.Allow(t.Context(), checks); err != nil {
				t.Fatal(err)
			}
			return checks[0].Decision
		}
		for i := range 20_000 {
			c := checkOf("usr="+strconv.Itoa(rng.IntN(3)), limits[rng.IntN(len(limits))], rng.Int64N(4))
			if rng.IntN(4) == 0 { // another instance
				ask(d.other, c)
			}
			before := d.hits()
			got := ask(d, c)
			if d.hits() > before {
				if want := ask(d.other, c); want.Allowed || got.RetryAfter > want.RetryAfter {
					t.Fatalf("call %d, %+v: got %+v from memory, but the store says %+v", i, c, got, want)
				}
			}
			time.Sleep(time.Duration(rng.Int64N(80_000)) * time.Microsecond)
		}
		if d.hits() < 500 {
			t.Errorf("got %d hits, want enough of them to mean something", d.hits())
		}
	})
}

func TestRememberedDenialAllocatesNothing(t *testing.T) {
	for _, limit := range bounded() {
		synctest.Test(t, func(t *testing.T) {
			d := newDenied()
			d.exhaust(t, limit)
			checks := []algorithms.Check{checkOf("usr=1", limit, 1)}
			before := d.hits()
			got := testing.AllocsPerRun(100, func() {
				if err := d.Allow(context.Background(), checks); err != nil {
					t.Fatal(err)
				}
			})
			if hits := d.hits() - before; hits != 101 {
				t.Fatalf("%v: got %d remembered denials, want 101", limit, hits)
			}
			if got >= 1 && !raceEnabled { // the race detector makes sync.Pool forget
				t.Errorf("%v: got %v allocations per denial, want none", limit, got)
			}
		})
	}
}
