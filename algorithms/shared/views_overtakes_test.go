// Settlements and answers that overtake a denial on its way.

package shared

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/algorithms/internal/step"
	"github.com/penstock-go/penstock/algorithms/shared/internal/trouble"
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
		d.store.after = func(c *call) { c.items[0].Now -= time.Minute.Microseconds() }
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
type lateTakes struct {
	*stateStore
	fails error // of takes, after that while
}

func (l lateTakes) allow(ctx context.Context, c *call) error {
	if c.items[0].Op == step.Take {
		if time.Sleep(20 * time.Millisecond); l.fails != nil {
			return l.fails
		}
	}
	return l.stateStore.allow(ctx, c)
}

// chargeUnderWay returns views over a layer, a check of a take that was admitted ahead and whose charge was sent, and
// when the charge ends.
func chargeUnderWay(next layer, limit algorithms.Limit) (*views, algorithms.Check, time.Time) {
	v := aheadOf(1, 20, 1_000, nil, 1, time.Millisecond)[0]
	v.next = next
	c := checkOf("usr=1", limit, 4)
	c.Decision, _, _ = v.ask(1, c)
	sent := v.start.Add((v.now()/gatherFor + 1) * gatherFor)
	time.Sleep(time.Until(sent) + time.Millisecond)
	return v, c, sent.Add(20 * time.Millisecond)
}

// A Return does not overtake the charge of a take that was admitted ahead.
func TestReturnFollowsItsCharge(t *testing.T) {
	for _, limit := range []algorithms.Limit{algorithms.TokenBucket(100, time.Hour), algorithms.FixedWindow(100, time.Hour)} {
		synctest.Test(t, func(t *testing.T) {
			store := newStateStore()
			v, back, ends := chargeUnderWay(lateTakes{stateStore: store}, limit)
			back.Op, back.Cost = algorithms.Return, 3
			if d, _, _ := v.ask(1, back); d.Receipt.Units() != 1 || !time.Now().Equal(ends) {
				t.Errorf("%v: got %+v %v after the charge, want 1 unit left on the receipt", limit, d, time.Since(ends))
			}
			v.close()
			if got := used(t, over(store), "usr=1", limit); got != 1 {
				t.Errorf("%v: got %d units charged, want 1", limit, got)
			}
		})
	}
}

// A Return of several keys takes all units off charges that are not sent yet, also if
// its context ends while it waits for another key's charge.
func TestReturnCancelsBeforeItWaits(t *testing.T) {
	limit := algorithms.TokenBucket(100, time.Hour)
	synctest.Test(t, func(t *testing.T) {
		store := newStateStore()
		v, sent, _ := chargeUnderWay(lateTakes{stateStore: store}, limit)
		gathers := checkOf("usr=2", limit, 4)
		gathers.Decision, _, _ = v.ask(1, gathers)
		sent.Op, gathers.Op = algorithms.Return, algorithms.Return
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		_ = over(v).Allow(ctx, []algorithms.Check{sent, gathers})
		v.close()
		if got := used(t, over(store), "usr=2", limit); got != 0 {
			t.Errorf("%d units stay charged, want none", got)
		}
	})
}

// A Return waits no longer than its context lasts, for no charge that has failed, and for one later charge at most.
func TestReturnsThatWaitForAChargeEnd(t *testing.T) {
	limit := algorithms.TokenBucket(100, time.Hour)
	giveBack := func(t *testing.T, ctx context.Context, v *views, c algorithms.Check) {
		c.Op = algorithms.Return
		one, err := newCall([]algorithms.Check{c})
		if err != nil {
			t.Fatal(err)
		}
		_ = v.allow(ctx, one)
	}
	synctest.Test(t, func(t *testing.T) {
		v, back, _ := chargeUnderWay(lateTakes{stateStore: newStateStore()}, limit)
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if giveBack(t, ctx, v, back); time.Since(began) != time.Millisecond {
			t.Errorf("waited %v, want it to end with its context", time.Since(began))
		}
		v.close()
	})
	for _, fails := range []error{trouble.ErrTimeout, trouble.ErrOpen} {
		synctest.Test(t, func(t *testing.T) {
			v, back, ends := chargeUnderWay(lateTakes{newStateStore(), fails}, limit)
			if giveBack(t, t.Context(), v, back); !time.Now().Equal(ends) {
				t.Errorf("%v: ended %v after the charge, want it to end with the charge", fails, time.Since(ends))
			}
			v.close()
		})
	}
	synctest.Test(t, func(t *testing.T) {
		v, back, ends := chargeUnderWay(lateTakes{stateStore: newStateStore()}, limit)
		done := make(chan time.Time, 1)
		go func() {
			giveBack(t, t.Context(), v, back)
			done <- time.Now()
		}()
		for range 60 { // each joins the next charge, and there are always some
			synctest.Wait()
			v.ask(1, checkOf("usr=1", limit, 1))
			time.Sleep(2 * time.Millisecond)
		}
		if ended, later := <-done, ends.Add(gatherFor+20*time.Millisecond); ended.After(later) {
			t.Errorf("ended %v after the charge, want neither Close nor further charges to hold it", ended.Sub(ends))
		}
		v.close()
	})
}

// A Return of a window that has ended takes nothing off a charge of the next window.
func TestReturnOfAnEndedWindowCancelsNothing(t *testing.T) {
	for _, limit := range []algorithms.Limit{algorithms.FixedWindow(100, time.Second), algorithms.SlidingWindowCounter(100, time.Second), algorithms.PerDay(100, time.UTC)} {
		synctest.Test(t, func(t *testing.T) {
			store := newStateStore()
			v := aheadOf(1, 20, 1_000, store, 1, time.Millisecond)[0]
			old := checkOf("usr=1", limit, 4)
			old.Decision, _, _ = v.ask(1, old)
			time.Sleep(48 * time.Hour)
			v.ask(1, checkOf("usr=1", limit, 4))
			old.Op = algorithms.Return
			v.ask(1, old)
			v.close()
			if got := used(t, over(store), "usr=1", limit); got != 4 {
				t.Errorf("%v: got %d units charged, want 4", limit, got)
			}
		})
	}
}

// A Return of two keys finds the units of both, although the charge of one is sent and that of the other gathers.
func TestReturnOfTwoKeysFollowsBothCharges(t *testing.T) {
	limit := algorithms.TokenBucket(100, time.Hour)
	synctest.Test(t, func(t *testing.T) {
		store := newStateStore()
		v := aheadOf(1, 20, 1_000, nil, 1, time.Millisecond)[0]
		v.next = lateTakes{stateStore: store}
		v.ask(1, checkOf("usr=1", limit, 1))
		time.Sleep(gatherFor)
		synctest.Wait() // that charge is sent: the next one of its key waits for it
		both := []algorithms.Check{checkOf("usr=1", limit, 4), checkOf("usr=2", limit, 4)}
		for i := range both {
			both[i].Decision, _, _ = v.ask(1, both[i])
			both[i].Op = algorithms.Return
		}
		time.Sleep(gatherFor)
		synctest.Wait()
		if err := over(v).Allow(t.Context(), both); err != nil {
			t.Fatal(err)
		}
		v.close()
		if one, two := used(t, over(store), "usr=1", limit), used(t, over(store), "usr=2", limit); one != 1 || two != 0 {
			t.Errorf("got %d and %d units charged, want 1 and 0", one, two)
		}
	})
}
