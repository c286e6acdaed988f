// Windows that are known to be spent when the primary fails, and the units that
// several instances then admit together.

package shared

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/penstock-go/penstock/algorithms"
)

// windowsOf are limits whose units come back by the window, not one by one.
func windowsOf(requests int64) []algorithms.Limit {
	return []algorithms.Limit{
		algorithms.FixedWindow(requests, time.Hour), algorithms.PerDay(requests, time.UTC),
		algorithms.SlidingWindowCounter(requests, time.Hour), algorithms.SlidingWindowLog(requests, time.Hour),
	}
}

// A window that is known to be spent admits nothing until the instant at which
// the primary would admit again. Every denial's RetryAfter ends then.
func TestSpentWindowsStaySpent(t *testing.T) {
	t.Parallel()
	for _, instances := range []int{1, 4} {
		for _, l := range windowsOf(20) {
			t.Run(fmt.Sprintf("%v/%d", l, instances), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					// Virtual time is not free: in an outage, each second of it is a probe. So the day has two hours left.
					time.Sleep(22 * time.Hour)
					w := newWorld(t, &Options{Instances: instances})
					time.Sleep(7 * time.Minute)
					if got := w.drain("usr=1", l); got != 20 {
						t.Fatalf("admitted %d, want 20", got)
					}
					free := time.Now().Add(w.take("usr=1", l, 1).RetryAfter)
					w.trip()
					pause := time.Until(free) / 1000
					for time.Now().Before(free) {
						d := w.take("usr=1", l, 1)
						if d.Allowed || d.Remaining != 0 || d.Source != algorithms.Local {
							t.Fatalf("%v before a unit is free: got %+v, want a local denial", time.Until(free), d)
						}
						if wait := time.Until(free); d.RetryAfter != wait || d.UnitAfter != wait || d.ResetAfter < wait {
							t.Fatalf("got %+v, want a wait of %v", d, wait)
						}
						if d := w.take("usr=1", l, 21); d.RetryAfter != algorithms.Never {
							t.Fatalf("got %+v, want that 21 units never fit", d)
						}
						time.Sleep(min(pause, time.Until(free)))
					}
					if l.Algorithm().Aligned() {
						if got := w.drain("usr=1", l); got != int64(20/instances) {
							t.Errorf("when the window has turned: admitted %d, want a share of 20", got)
						}
					}
				})
			})
		}
	}
}

// A unit that this instance returned before the primary went is free.
func TestReturnedUnitsAreNotSpent(t *testing.T) {
	for _, l := range windowsOf(20) {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, nil)
			taken := algorithms.Check{Policy: "default", Key: "usr=1", Limit: l, Cost: 5}
			decided, err := w.settle(taken)
			if err != nil {
				t.Fatal(err)
			}
			w.drain("usr=1", l)
			taken.Op, taken.Decision = algorithms.Return, decided
			if _, err := w.settle(taken); err != nil {
				t.Fatal(err)
			}
			w.trip()
			if got := w.drain("usr=1", l); got != 5 {
				t.Errorf("%v: admitted %d, want the 5 that were returned", l, got)
			}
		})
	}
}

// Units that the primary or another instance has given back are not spent.
// Neither are units under another limit.
func TestSpentIsNotForEver(t *testing.T) {
	limit := algorithms.PerMonth(1_000, time.UTC)
	tests := map[string]struct {
		before func(w *world)
		limit  algorithms.Limit
		most   bool          // admitted
		wait   time.Duration // at most; 0: any
	}{
		"spent":              {func(*world) {}, limit, false, 0},
		"asked for nothing":  {func(w *world) { w.trip(); w.take("usr=1", limit, 0) }, limit, false, 0},
		"reset by another":   {func(w *world) { w.elsewhere(limit, algorithms.Reset); w.take("usr=1", limit, 1) }, limit, true, 0},
		"granted by another": {func(w *world) { w.elsewhere(limit, algorithms.Grant); w.take("usr=1", limit, 1) }, limit, true, 0},
		"of another limit":   {func(*world) {}, algorithms.PerMonth(2_000, time.UTC), true, 0},
		"before a step back": {func(w *world) { w.fallback.now = func() int64 { return time.Now().Add(-time.Hour).UnixMicro() } }, limit, false, 24 * time.Hour},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, &Options{Instances: 4})
				w.take("usr=1", limit, 1_000)
				w.take("usr=1", limit, 1)
				tt.before(w)
				if !w.stats().Open {
					w.trip()
				}
				got := w.take("usr=1", tt.limit, 1)
				if got.Allowed != tt.most || tt.wait > 0 && got.RetryAfter > tt.wait {
					t.Errorf("got %+v, want allowed %t, and a wait of at most %v", got, tt.most, tt.wait)
				}
			})
		})
	}
}

// elsewhere settles a key at another instance.
func (w *world) elsewhere(l algorithms.Limit, op algorithms.Op) {
	w.t.Helper()
	checks := []algorithms.Check{{Policy: "default", Key: "usr=1", Limit: l, Op: op, Cost: 900}}
	if err := w.shared.store.Allow(w.t.Context(), checks); err != nil {
		w.t.Fatal(err)
	}
}

// Four instances lose the primary at once. Whatever it held, they admit
// together at most the sum of the runbook: the free units, one share of the
// burst each, rounded up, and the rate of the whole limit.
func TestInstancesAloneKeepTheSum(t *testing.T) {
	t.Parallel()
	const instances, burst = 4, 20
	for _, spent := range []int64{0, 9, 10, 15, 19, 20} {
		for _, l := range everyAlgorithm(burst, time.Minute) {
			t.Run(fmt.Sprintf("%v/%d", l, spent), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					store := newStateStore()
					all := make([]*world, instances)
					for i := range all {
						all[i] = &world{t: t, shared: &fakePrimary{store: over(store)}, memory: newMemory()}
						all[i].start(all[i].shared, &Options{Instances: instances})
					}
					time.Sleep(7 * time.Second)
					for range spent {
						all[0].take("usr=1", l, 1)
					}
					for _, w := range all { // each asks, and so knows
						w.take("usr=1", l, 0)
					}
					for _, w := range all {
						w.shared.fails(errRefused)
					}
					began, admitted := time.Now(), int64(0)
					for time.Since(began) < 40*time.Second {
						for _, w := range all {
							admitted += w.drain("usr=1", l)
						}
						time.Sleep(100 * time.Millisecond)
					}
					most := burst + instances + int64(time.Since(began)*burst/time.Minute)
					if spent == burst && l.Algorithm().Aligned() {
						most = 0
					} else if spent*2 >= burst {
						most -= spent
					}
					if admitted > most {
						t.Errorf("admitted %d in 40 s, want at most %d", admitted, most)
					}
				})
			})
		}
	}
}
