// Returns of units that were admitted ahead, and whose charge has failed: the units wait in the ledger.

package shared

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/penstock-go/penstock/algorithms"
)

// A lateReturn is a Return of four units that were admitted ahead and that are owed when it comes.
type lateReturn struct {
	*world
	limit algorithms.Limit
}

// newLateReturn takes so many units of the key at other instances, and four here, whose charge the primary refuses.
func newLateReturn(t *testing.T, limit algorithms.Limit, others int64) (*lateReturn, algorithms.Check) {
	w := newWorld(t, &Options{Ahead: 20, Views: 1_000, Instances: 4})
	w.views.certain(4)
	take(t, w.shared.store, "usr=1", limit, others)
	c := checkOf("usr=1", limit, 4)
	c.Decision = w.take("usr=1", limit, 4)
	refused := false
	w.shared.troubled(func(context.Context) error {
		if !refused {
			refused = true
			return errRefused
		}
		return nil
	})
	time.Sleep(2 * gatherFor) // the charge wakes up when a span of gatherFor ends
	synctest.Wait()
	if s := w.stats(); c.Decision.Source != algorithms.Shared || s.Owed != 1 || s.Open != 0 {
		t.Fatalf("got %+v, %+v, want 4 units admitted ahead, and owed", c.Decision, s)
	}
	c.Op = algorithms.Return
	return &lateReturn{w, limit}, c
}

// charged makes the Return, and returns what the primary holds when nothing is owed.
func (w *lateReturn) charged(c algorithms.Check) int64 {
	w.t.Helper()
	if err := w.Allow(w.t.Context(), []algorithms.Check{c}); err != nil {
		w.t.Error(err)
	}
	time.Sleep(2 * handBackEvery)
	if s := w.stats(); s.Owed != 0 || s.Returns != 0 || s.Lost+s.ReturnsLost != 0 {
		w.t.Errorf("got %+v, want nothing owed, kept or lost", s)
	}
	return used(w.t, w.shared.store, "usr=1", w.limit)
}

// TestReturnTakesItsUnitsOffTheDebt: a Return whose units are owed leaves charged the units of others, and no unit more or less.
func TestReturnTakesItsUnitsOffTheDebt(t *testing.T) {
	for _, limit := range []algorithms.Limit{
		algorithms.TokenBucket(100, 100*time.Hour), algorithms.FixedWindow(100, 100*time.Hour),
		algorithms.SlidingWindowCounter(100, 100*time.Hour), algorithms.PerMonth(100, time.UTC),
	} {
		for _, others := range []int64{0, 1, 4, 50} {
			t.Run(fmt.Sprintf("%v/%d", limit, others), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w, back := newLateReturn(t, limit, others)
					if got := w.charged(back); got != others {
						t.Errorf("got %d units charged, want %d", got, others)
					}
				})
			})
		}
	}
}

// TestReturnOfTwoKeysTakesOneOffTheDebt: of a call, the Returns whose units are owed make the debt smaller, and Redis makes the
// others.
func TestReturnOfTwoKeysTakesOneOffTheDebt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limit := algorithms.PerMonth(100, time.UTC)
		w, owed := newLateReturn(t, limit, 0)
		charged := checkOf("usr=2", limit, 7)
		charged.Decision = take(t, w.shared.store, "usr=2", limit, 7)
		charged.Op = algorithms.Return
		checks := []algorithms.Check{charged, owed}
		if err := w.Allow(t.Context(), checks); err != nil {
			t.Error(err)
		}
		time.Sleep(2 * handBackEvery)
		for i, key := range []string{"usr=2", "usr=1"} {
			if got := used(t, w.shared.store, key, limit); got != 0 || checks[i].Decision.Receipt.Units() != 0 || !checks[i].Decision.Allowed {
				t.Errorf("%s: got %d units charged, and %+v, want none, and no receipt", key, got, checks[i].Decision)
			}
		}
	})
}
