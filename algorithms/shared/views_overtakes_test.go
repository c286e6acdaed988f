// Settlements and answers that overtake a denial on its way.

package shared

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/algorithms/internal/step"
)

// A settlement that runs while a denial is on its way ends that denial, too.
func TestSettlementOvertakesDenial(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDenied()
		limit := algorithms.FixedWindow(2, time.Hour)
		take(t, d, "usr=1", limit, 2)
		d.store.after = func(*call) {
			d.store.after = nil
			reset := algorithms.Check{Policy: "default", Key: "usr=1", Limit: limit, Op: algorithms.Reset}
			if err := d.Allow(t.Context(), []algorithms.Check{reset}); err != nil {
				t.Error(err)
			}
		}
		if got := take(t, d, "usr=1", limit, 1); got.Allowed {
			t.Fatal("admitted above the limit")
		}
		if got := take(t, d, "usr=1", limit, 1); !got.Allowed {
			t.Errorf("after the reset: got %+v and %d hits, want it admitted", got, d.hits())
		}
		time.Sleep(time.Microsecond)
		d.exhaust(t, limit)
		before := d.hits()
		take(t, d, "usr=1", limit, 1)
		if d.hits() != before+1 {
			t.Errorf("got %d hits, want %d: a denial after the reset is remembered", d.hits(), before+1)
		}
	})
}

// An answer that arrives late drops no denial that Redis gave after it.
func TestLateAnswerDropsNoNewerDenial(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, limit := newDenied(), algorithms.FixedWindow(2, time.Hour)
		late := true
		d.store.after = func(*call) {
			if late { // the first answer
				late = false
				time.Sleep(20 * time.Millisecond)
			}
		}
		go func() { _, _ = algorithms.Allow(t.Context(), d, "usr=1", limit) }()
		synctest.Wait()
		time.Sleep(5 * time.Millisecond)
		d.exhaust(t, limit)
		time.Sleep(20 * time.Millisecond)
		hits := d.hits()
		if got := take(t, d, "usr=1", limit, 1); got.Allowed || d.hits() != hits+1 {
			t.Errorf("got %+v and %d hits, want the remembered denial", got, d.hits()-hits)
		}
	})
}

// A server's clock that was set back, as by a failover, makes no later answer an old one.
func TestViewsFollowAServerWhoseClockIsBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, limit := newDenied(), algorithms.TokenBucket(2, time.Hour)
		d.exhaust(t, limit)
		time.Sleep(time.Second)
		d.store.after = func(c *call) { c.items[0].now -= time.Minute.Microseconds() }
		reset := algorithms.Check{Policy: "default", Key: "usr=1", Limit: limit, Op: algorithms.Reset}
		if err := d.Allow(t.Context(), []algorithms.Check{reset}); err != nil {
			t.Fatal(err)
		}
		if got := take(t, d, "usr=1", limit, 1); !got.Allowed {
			t.Errorf("after the reset: got %+v, want it admitted", got)
		}
	})
}

// A lateTakes is a layer to which takes travel for a while, and Returns not at all.
type lateTakes struct{ *stateStore }

func (l lateTakes) allow(ctx context.Context, c *call) error {
	if c.items[0].Op == step.Take {
		time.Sleep(20 * time.Millisecond)
	}
	return l.stateStore.allow(ctx, c)
}

// A Return does not overtake the charge of a take that was admitted ahead.
func TestReturnFollowsItsCharge(t *testing.T) {
	for _, limit := range []algorithms.Limit{algorithms.TokenBucket(100, time.Hour), algorithms.FixedWindow(100, time.Hour)} {
		synctest.Test(t, func(t *testing.T) {
			store := newStateStore()
			v := aheadOf(1, 20, 1_000, store, 1, time.Millisecond)[0]
			v.next = lateTakes{store}
			back := checkOf("usr=1", limit, 3)
			back.Decision, _, _ = v.ask(1, checkOf("usr=1", limit, 4))
			time.Sleep(2 * gatherFor) // the charge is under way
			back.Op = algorithms.Return
			if d, _, waited := v.ask(1, back); d.Receipt.Units() != 1 || waited > 20*time.Millisecond {
				t.Errorf("%v: got %+v after %v, want 1 unit left on the receipt", limit, d, waited)
			}
			v.close()
			if got := used(t, over(store), "usr=1", limit); got != 1 {
				t.Errorf("%v: got %d units charged, want 1", limit, got)
			}
		})
	}
}
