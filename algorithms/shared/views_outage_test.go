// Remembered denials while Redis does not decide.

package shared

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/algorithms/internal/step"
)

// remembering returns a world with views.
func remembering(t *testing.T, o Options) *world {
	o.Views = 1_000
	return newWorld(t, &o)
}

// spendable is a limit of each algorithm whose denials are remembered.
func spendable(requests int64, window time.Duration) []algorithms.Limit {
	return append(everyAlgorithm(requests, window), algorithms.PerDay(requests, time.UTC))
}

// A key that is spent when the primary fails stays denied until its RetryAfter,
// with the waits that the primary would tell. Then the memory admits what is left of a share: of the units in
// use, it leaves out one.
func TestSpentKeysStaySpent(t *testing.T) {
	t.Parallel()
	for _, instances := range []int{1, 4} {
		for _, l := range spendable(20, time.Hour) {
			t.Run(fmt.Sprintf("%v/%d", l, instances), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					// In an outage, each second of virtual time is a probe. So the day has two hours left.
					time.Sleep(22 * time.Hour)
					w := remembering(t, Options{Instances: instances})
					time.Sleep(7 * time.Minute)
					if got := w.drain("usr=1", l); got != 20 {
						t.Fatalf("admitted %d, want 20", got)
					}
					free := time.Now().Add(w.take("usr=1", l, 1).RetryAfter)
					time.Sleep(90 * time.Second) // it is an old denial then
					w.trip()
					pause := time.Until(free) / 500
					for time.Now().Before(free) {
						got, want := w.take("usr=1", l, 1), take(t, w.shared.store, "usr=1", l, 1)
						if !l.Step().Row.Counted && got.ResetAfter >= want.RetryAfter {
							got.ResetAfter = want.ResetAfter
						}
						if got != want || got.Allowed {
							t.Fatalf("%v before a unit is free: got %+v, the primary says %+v", time.Until(free), got, want)
						}
						time.Sleep(min(pause, time.Until(free)))
					}
					want := int64(20 / instances)
					if row := l.Step().Row; row.Counted && row.Refill != step.AtTurns {
						want -= int64(18 / instances)
					}
					if got := w.drain("usr=1", l); got != want {
						t.Errorf("when a unit is free: admitted %d, want %d", got, want)
					}
				})
			})
		}
	}
}

// While the primary decides, an old denial answers nothing. While it does not,
// it answers FailLocal takes that have no room, also exact ones, and nothing else.
func TestOldDenialsAnswerOnlyWithoutThePrimary(t *testing.T) {
	limit := algorithms.TokenBucket(10, 1_000*time.Second)
	with := func(change func(c *algorithms.Check)) algorithms.Check {
		c := checkOf("usr=1", limit, 5)
		change(&c)
		return c
	}
	tests := map[string]struct {
		check   algorithms.Check
		allowed bool
		err     error
		from    algorithms.Source
	}{
		"the same":       {with(func(*algorithms.Check) {}), false, nil, algorithms.Shared},
		"exact":          {with(func(c *algorithms.Check) { c.Exact = true }), false, nil, algorithms.Shared},
		"more":           {with(func(c *algorithms.Check) { c.Cost = 6 }), false, nil, algorithms.Shared},
		"more than fits": {with(func(c *algorithms.Check) { c.Cost = 11 }), false, nil, algorithms.Shared},
		"less":           {with(func(c *algorithms.Check) { c.Cost = 4 }), false, nil, algorithms.Shared},
		"what is left":   {with(func(c *algorithms.Check) { c.Cost = 2 }), true, nil, algorithms.Local},
		"open":           {with(func(c *algorithms.Check) { c.Fail = algorithms.FailOpen }), true, nil, algorithms.Undecided},
		"closed":         {with(func(c *algorithms.Check) { c.Fail = algorithms.FailClosed }), false, algorithms.ErrUnavailable, algorithms.Undecided},
		"a trial":        {with(func(c *algorithms.Check) { c.Op = algorithms.Trial }), false, nil, algorithms.Local},
		"another limit":  {with(func(c *algorithms.Check) { c.Limit = limit.WithBurst(20) }), true, nil, algorithms.Local},
		"another key":    {with(func(c *algorithms.Check) { c.Key = "usr=2" }), true, nil, algorithms.Local},
	}
	for name, tt := range tests {
		for _, open := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/%v", name, open), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w := remembering(t, Options{})
					w.take("usr=1", limit, 8)
					w.take("usr=1", limit, 5) // denied: 2 remain
					time.Sleep(2 * time.Second)
					before, _ := w.shared.asked()
					w.take("usr=1", limit, 5)
					if after, _ := w.shared.asked(); after != before+1 {
						t.Errorf("the primary was asked %d times about an old denial, want once", after-before)
					}
					time.Sleep(2 * time.Second)
					if w.shared.fails(errRefused); open {
						w.trip()
					}
					checks := []algorithms.Check{tt.check}
					err := w.Allow(context.Background(), checks)
					if !errors.Is(err, tt.err) || (err != nil) != (tt.err != nil) {
						t.Fatalf("got error %v, want %v", err, tt.err)
					}
					if d := checks[0].Decision; err == nil && (d.Allowed != tt.allowed || d.Source != tt.from) {
						t.Errorf("got %+v, want allowed %v, by %v", d, tt.allowed, tt.from)
					}
				})
			})
		}
	}
}

// A denied take denies its call. The memory charges none of the other takes.
func TestOldDenialsDenyTheCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, limit := remembering(t, Options{}), algorithms.FixedWindow(3, 10*time.Hour)
		w.drain("usr=1", limit)
		time.Sleep(2 * time.Second)
		w.trip()
		checks := []algorithms.Check{checkOf("usr=2", limit, 1), checkOf("usr=1", limit, 1), checkOf("usr=3", limit, 1)}
		local := w.stats().Local
		if err := w.Allow(context.Background(), checks); err != nil || algorithms.Allowed(checks) {
			t.Fatalf("got %+v, %v, want it denied", checks, err)
		}
		for _, i := range []int{0, 2} {
			if d := checks[i].Decision; d != (algorithms.Decision{Allowed: true}) {
				t.Errorf("check %d: got %+v, want it Undecided", i, d)
			}
			if got := used(t, w.memory, checks[i].Key, limit); got != 0 {
				t.Errorf("check %d: the memory has charged %d, want none", i, got)
			}
		}
		if got := w.stats().Local - local; got != 3 {
			t.Errorf("got %d checks decided locally, want 3", got)
		}
	})
}

// A denial that was answered without the primary is no answer of the primary. It
// stays as old as it is: calls go on asking a primary that fails, and ask it
// again as soon as it decides.
func TestOldDenialsStayOld(t *testing.T) {
	for _, limit := range everyAlgorithm(10, 1_000*time.Second) {
		synctest.Test(t, func(t *testing.T) {
			w := remembering(t, Options{})
			w.drain("usr=1", limit)
			time.Sleep(2 * time.Second)
			w.shared.fails(errRefused)
			before, _ := w.shared.asked()
			for i := range 3 {
				got, want := w.take("usr=1", limit, 1), take(t, w.shared.store, "usr=1", limit, 1)
				if got.Allowed || got.RetryAfter != want.RetryAfter || got.Remaining != want.Remaining || got.UnitAfter != want.UnitAfter {
					t.Errorf("%v, failure %d: got %+v, the primary says %+v", limit, i, got, want)
				}
				time.Sleep(10 * time.Millisecond)
			}
			if after, _ := w.shared.asked(); after != before+3 {
				t.Errorf("%v: the primary was asked %d times, want at each of the 3 failures", limit, after-before)
			}
			w.elsewhere(limit, algorithms.Reset)
			w.shared.fails(nil)
			if got := w.take("usr=1", limit, 1); !got.Allowed {
				t.Errorf("%v, after a Reset of another instance: got %+v, want it admitted", limit, got)
			}
		})
	}
}

// The memory knows by itself that a cost above the burst never fits.
func TestNeverIsRemembered(t *testing.T) {
	for _, limit := range spendable(10, 1_000*time.Second) {
		synctest.Test(t, func(t *testing.T) {
			w := remembering(t, Options{Instances: 4})
			never := func(when string) {
				t.Helper()
				if got := w.take("usr=1", limit, 11); got.Allowed || got.RetryAfter != algorithms.Never {
					t.Errorf("%v, %s: got %+v, want it never", limit, when, got)
				}
			}
			never("at first")
			before, _ := w.shared.asked()
			never("remembered")
			if after, _ := w.shared.asked(); after != before {
				t.Errorf("%v: the primary was asked again", limit)
			}
			time.Sleep(freshFor)
			never("a second later")
			if after, _ := w.shared.asked(); after != before+1 {
				t.Errorf("%v: the primary was not asked after a second", limit)
			}
			w.trip()
			never("without the primary")
			time.Sleep(time.Minute)
			never("a minute later")
			if got := w.take("usr=1", limit, 1); !got.Allowed {
				t.Errorf("%v, a smaller cost: got %+v, want it admitted", limit, got)
			}
		})
	}
}

// elsewhere settles a key at another instance.
func (w *world) elsewhere(l algorithms.Limit, op algorithms.Op) {
	w.t.Helper()
	c := checkOf("usr=1", l, 900)
	c.Op = op
	if err := w.shared.store.Allow(w.t.Context(), []algorithms.Check{c}); err != nil {
		w.t.Fatal(err)
	}
}

// A spentWorld has a key that is spent, and knows it.
type spentWorld struct {
	*world
	taken algorithms.Decision
}

// Settlements that the primary has executed drop a denial. Units that another
// instance has given back count once the primary has answered again.
func TestSpentIsNotForEver(t *testing.T) {
	limit := algorithms.PerMonth(1_000, time.UTC)
	settles := func(op algorithms.Op) func(w *spentWorld) {
		return func(w *spentWorld) {
			c := algorithms.Check{Key: "usr=1", Limit: limit, Op: op, Cost: 900, Decision: w.taken}
			if _, err := w.settle(c); err != nil {
				w.t.Fatal(err)
			}
		}
	}
	then := func(first func(w *spentWorld)) func(w *spentWorld) {
		return func(w *spentWorld) {
			first(w)
			time.Sleep(freshFor)
			w.take("usr=1", limit, 1)
		}
	}
	tests := map[string]struct {
		before  func(w *spentWorld)
		limit   algorithms.Limit
		allowed bool
	}{
		"spent":                      {func(*spentWorld) {}, limit, false},
		"asked for nothing":          {func(w *spentWorld) { w.trip(); w.take("usr=1", limit, 0) }, limit, false},
		"reset":                      {settles(algorithms.Reset), limit, true},
		"returned":                   {settles(algorithms.Return), limit, true},
		"granted":                    {settles(algorithms.Grant), limit, true},
		"forced, and asked again":    {then(settles(algorithms.Force)), limit, false},
		"reset by another":           {then(func(w *spentWorld) { w.elsewhere(limit, algorithms.Reset) }), limit, true},
		"granted by another":         {then(func(w *spentWorld) { w.elsewhere(limit, algorithms.Grant) }), limit, true},
		"returned without Redis":     {func(w *spentWorld) { w.trip(); settles(algorithms.Return)(w) }, limit, false},
		"forced without Redis":       {func(w *spentWorld) { w.trip(); settles(algorithms.Force)(w) }, limit, false},
		"of another limit":           {func(*spentWorld) {}, algorithms.PerMonth(2_000, time.UTC), true},
		"after a local clock's jump": {func(w *spentWorld) { w.fallback.now = func() int64 { return time.Now().Add(-time.Hour).UnixMicro() } }, limit, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := &spentWorld{world: remembering(t, Options{Instances: 4})}
				w.taken = w.take("usr=1", limit, 1_000)
				w.take("usr=1", limit, 1)
				tt.before(w)
				if w.stats().Open == 0 {
					w.trip()
				}
				if got := w.take("usr=1", tt.limit, 1); got.Allowed != tt.allowed {
					t.Errorf("got %+v, want allowed %t", got, tt.allowed)
				}
			})
		})
	}
}
