package algorithms_test

import (
	"context"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"github.com/penstock-go/penstock/algorithms"
)

// shared makes a Memory look like what all instances share.
type shared struct {
	*algorithms.Memory
	source algorithms.Source
	during func() // runs after the decision, before the answer
}

func (s *shared) Allow(ctx context.Context, checks []algorithms.Check) error {
	err := s.Memory.Allow(ctx, checks)
	for i := range checks {
		checks[i].Decision.Source = s.source
	}
	if s.during != nil {
		s.during()
	}
	return err
}

// denyCache returns a cache over a store, and the store: another instance's
// way to it.
func denyCache(t *testing.T) (cache algorithms.Limiter, store *shared, hits func() (uint64, int)) {
	store = &shared{Memory: newMemory(t, nil), source: algorithms.Shared}
	cache, hits = algorithms.NewDenyCacheForTest(store, 1_000)
	return cache, store, hits
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

// exhaust takes until a denial, through the cache.
func exhaust(t *testing.T, l algorithms.Limiter, limit algorithms.Limit) algorithms.Decision {
	t.Helper()
	for range 20 {
		if d := take(t, l, "usr=1", limit); !d.Allowed {
			return d
		}
	}
	t.Fatalf("%v is not exhausted by 20", limit)
	return algorithms.Decision{}
}

// A remembered denial says what the store would say, without asking it, for a
// second; and the store is asked again at the instant that was promised.
func TestDenialsAreRemembered(t *testing.T) {
	for _, limit := range bounded() {
		synctest.Test(t, func(t *testing.T) {
			cache, store, hits := denyCache(t)
			exhaust(t, cache, limit)
			for i := range 10 {
				got, want := take(t, cache, "usr=1", limit), take(t, store, "usr=1", limit)
				if n, _ := hits(); got != want || n != uint64(i+1) {
					t.Errorf("%v after %d00ms: got %+v and %d hits, the store says %+v", limit, i, got, n, want)
				}
				time.Sleep(100 * time.Millisecond)
			}
			d := take(t, cache, "usr=1", limit)
			if n, _ := hits(); n != 10 {
				t.Errorf("%v after a second: got %d hits, want 10: it is no longer remembered", limit, n)
			}
			time.Sleep(d.RetryAfter - time.Microsecond)
			if d := take(t, cache, "usr=1", limit); d.Allowed {
				t.Errorf("%v: admitted before RetryAfter", limit)
			}
			time.Sleep(time.Microsecond)
			if d := take(t, cache, "usr=1", limit); !d.Allowed {
				t.Errorf("%v at RetryAfter: got %+v, want it admitted", limit, d)
			}
		})
	}
}

func TestDenialsAreForgotten(t *testing.T) {
	limit := algorithms.FixedWindow(2, time.Hour)
	base := algorithms.Check{Policy: algorithms.DefaultPolicy, Key: "usr=1", Limit: limit, Cost: 1}
	with := func(change func(c *algorithms.Check)) algorithms.Check {
		c := base
		change(&c)
		return c
	}
	tests := []struct {
		name    string
		between algorithms.Check
		again   algorithms.Check
		hit     bool
	}{
		{"nothing", with(func(c *algorithms.Check) { c.Key = "usr=2" }), base, true},
		{"a grant", with(func(c *algorithms.Check) { c.Op = algorithms.Grant }), base, false},
		{"a reset", with(func(c *algorithms.Check) { c.Op = algorithms.Reset }), base, false},
		{"a return", with(func(c *algorithms.Check) { c.Op = algorithms.Return }), base, false},
		{"a force makes it longer", with(func(c *algorithms.Check) { c.Op = algorithms.Force }), base, true},
		{"another limit", with(func(c *algorithms.Check) { c.Cost = 0; c.Key = "usr=2" }), with(func(c *algorithms.Check) { c.Limit = algorithms.FixedWindow(5, time.Hour) }), false},
		{"another cost", with(func(c *algorithms.Check) { c.Key = "usr=2" }), with(func(c *algorithms.Check) { c.Cost = 0 }), false},
		{"another policy", with(func(c *algorithms.Check) { c.Key = "usr=2" }), with(func(c *algorithms.Check) { c.Policy = "other" }), false},
		{"exactly", with(func(c *algorithms.Check) { c.Key = "usr=2" }), with(func(c *algorithms.Check) { c.Exact = true }), false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cache, _, hits := denyCache(t)
				exhaust(t, cache, limit)
				for _, c := range []algorithms.Check{tt.between, tt.again} {
					if err := cache.Allow(t.Context(), []algorithms.Check{c}); err != nil {
						t.Fatal(err)
					}
				}
				if n, _ := hits(); (n == 1) != tt.hit {
					t.Errorf("got %d hits, want one: %t", n, tt.hit)
				}
			})
		})
	}
}

// A settlement that is made while a denial is on its way ends that denial, too.
func TestSettlementOvertakesDenial(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cache, store, hits := denyCache(t)
		limit := algorithms.FixedWindow(2, time.Hour)
		take(t, cache, "usr=1", limit)
		take(t, cache, "usr=1", limit)
		store.during = func() {
			store.during = nil
			if err := algorithms.Forget(t.Context(), cache, "usr=1", limit); err != nil {
				t.Error(err)
			}
		}
		if d := take(t, cache, "usr=1", limit); d.Allowed {
			t.Fatal("admitted above the limit")
		}
		if d := take(t, cache, "usr=1", limit); !d.Allowed {
			n, _ := hits()
			t.Errorf("after the reset: got %+v and %d hits, want it admitted", d, n)
		}
		exhaust(t, cache, limit)
		before, _ := hits()
		take(t, cache, "usr=1", limit)
		if n, _ := hits(); n != before+1 {
			t.Errorf("got %d hits, want %d: what is denied after the reset is remembered", n, before+1)
		}
	})
}

func TestOnlySharedDenialsAreRemembered(t *testing.T) {
	for _, source := range []algorithms.Source{algorithms.Local, algorithms.Undecided} {
		synctest.Test(t, func(t *testing.T) {
			cache, store, hits := denyCache(t)
			store.source = source
			for range 5 {
				exhaust(t, cache, algorithms.FixedWindow(1, time.Hour))
			}
			if n, keys := hits(); n != 0 || keys != 0 {
				t.Errorf("%v: got %d hits and %d keys, want none", source, n, keys)
			}
		})
	}
}

// Of a call of several checks, the denied ones are remembered; the others are
// not asked then, and trials are always counted.
func TestDenialsOfSeveralChecks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cache, store, hits := denyCache(t)
		checks := []algorithms.Check{
			{Policy: "wide", Key: "usr=1", Limit: algorithms.FixedWindow(100, time.Hour), Cost: 1},
			{Policy: "narrow", Key: "usr=1", Limit: algorithms.FixedWindow(2, time.Hour), Cost: 1},
			{Policy: "narrow", Key: "usr=1", Limit: algorithms.FixedWindow(2, time.Hour), Cost: 1},
			{Policy: "shadow", Key: "usr=1", Limit: algorithms.FixedWindow(9, time.Hour), Cost: 1, Op: algorithms.Trial},
		}
		allow := func(checks []algorithms.Check) {
			t.Helper()
			if err := cache.Allow(t.Context(), checks); err != nil {
				t.Fatal(err)
			}
		}
		allow(checks[:3])
		allow(checks[:3]) // both of narrow are denied, the second for what it asks with the first
		allow(checks[:3])
		n, _ := hits()
		if n != 1 || algorithms.Allowed(checks) || checks[0].Decision != (algorithms.Decision{Allowed: true}) {
			t.Errorf("got %d hits and %+v, want one, and wide not asked", n, checks[:3])
		}
		allow(checks)
		if n, _ := hits(); n != 1 || checks[3].Decision.Source != algorithms.Shared {
			t.Errorf("got %d hits and %+v, want the trial counted by the store", n, checks[3].Decision)
		}
		d, err := algorithms.Peek(t.Context(), store, "usr=1", algorithms.FixedWindow(100, time.Hour))
		if err != nil || d.Remaining != 100 {
			t.Errorf("got %d, %v", d.Remaining, err)
		}
	})
}

// With takes alone, a remembered denial is never one that the store would not
// make: also while others take, and at costs that change. (A limit with another
// window may forget what this one counts: that is seen a second late.)
func TestDenyCacheNeverDeniesMore(t *testing.T) {
	const seed = 7
	synctest.Test(t, func(t *testing.T) {
		rng := rand.New(rand.NewPCG(seed, seed))
		cache, store, hits := denyCache(t)
		limits := bounded()
		for i := range 20_000 {
			c := algorithms.Check{Policy: "p", Key: "usr=" + strconv.Itoa(rng.IntN(3)), Limit: limits[rng.IntN(len(limits))], Cost: rng.Int64N(4)}
			if rng.IntN(4) == 0 { // another instance
				if err := store.Allow(t.Context(), []algorithms.Check{c}); err != nil {
					t.Fatal(err)
				}
			}
			before, _ := hits()
			got := []algorithms.Check{c}
			if err := cache.Allow(t.Context(), got); err != nil {
				t.Fatal(err)
			}
			if after, _ := hits(); after > before {
				want := []algorithms.Check{c}
				if err := store.Allow(t.Context(), want); err != nil {
					t.Fatal(err)
				}
				if want[0].Decision.Allowed || got[0].Decision.RetryAfter > want[0].Decision.RetryAfter {
					t.Fatalf("call %d, %+v: remembered as denied, but the store says %+v", i, got[0], want[0].Decision)
				}
			}
			time.Sleep(time.Duration(rng.Int64N(80_000)) * time.Microsecond)
		}
		if n, _ := hits(); n < 500 {
			t.Errorf("got %d hits, want enough of them to mean something", n)
		}
	})
}

// What is remembered are not the bytes of a key, which are the caller's again.
func TestDenyCacheKeepsNoBytes(t *testing.T) {
	cache, _, hits := denyCache(t)
	limit := algorithms.FixedWindow(1, time.Hour)
	bytes := []byte("usr=1")
	key := unsafe.String(unsafe.SliceData(bytes), len(bytes))
	take(t, cache, key, limit)
	take(t, cache, key, limit)
	bytes[4] = '2'
	take(t, cache, "usr=1", limit)
	if n, _ := hits(); n != 1 {
		t.Errorf("got %d hits, want one", n)
	}
}

func TestLongKeysAreNotRemembered(t *testing.T) {
	cache, _, hits := denyCache(t)
	for _, n := range []int{1152, 1153} {
		for range 3 {
			take(t, cache, strings.Repeat("k", n), algorithms.FixedWindow(1, time.Hour))
		}
	}
	if n, keys := hits(); n != 1 || keys != 1 {
		t.Errorf("got %d hits and %d keys, want one of the shorter key", n, keys)
	}
}

func TestDenyCacheIsBounded(t *testing.T) {
	cache, _, hits := denyCache(t)
	limit := algorithms.FixedWindow(1, time.Hour)
	for i := range 20_000 {
		key := "ip=" + strconv.Itoa(i)
		take(t, cache, key, limit)
		take(t, cache, key, limit)
	}
	if _, keys := hits(); keys > 1_024 || keys < 512 {
		t.Errorf("got %d keys, want about 1 000", keys)
	}
}
