// How debts become smaller.

package shared

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/algorithms/internal/step"
	"github.com/penstock-go/penstock/algorithms/shared/internal/circuit"
)

// The example at the head of fallback_ledger.go.
func TestDebtOfAShareDrains(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := algorithms.TokenBucket(60, time.Minute)
		for after, want := range map[time.Duration]int64{0: 6, 2_999 * time.Millisecond: 6, 3 * time.Second: 5, 6 * time.Second: 4, 18 * time.Second: 0} {
			w := newWorld(t, &Options{Instances: 3})
			w.trip()
			opened := time.Now()
			w.take("usr=1", l, 6)
			time.Sleep(time.Until(opened.Add(after)))
			if got, _, _ := (&sums{world: w}).owed(); got["usr=1"] != want {
				t.Errorf("%v after 6 units: %d are owed, want %d", after, got["usr=1"], want)
			}
			_ = w.Close()
		}
	})
}

// A debtEvent is a charge, a return, or a hand-back that fails.
type debtEvent struct {
	after time.Duration
	what  string
	units int64
}

var debtEvents = rapid.Custom(func(r *rapid.T) debtEvent {
	return debtEvent{
		after: time.Duration(rapid.SampledFrom([]int64{0, 1, 700, 10_000, 59_000, 61_000, 150_000}).Draw(r, "after")) * time.Millisecond,
		what:  rapid.SampledFrom([]string{"charge", "charge", "charge", "return", "fail"}).Draw(r, "what"),
		units: rapid.Int64Range(1, 9).Draw(r, "units"),
	}
})

// A debt counts as a limiter counts that has charged and returned the same units
// at the same instants: for buckets under the share, whose rate is this
// process's part, and for windows under the whole limit.
func TestDebtsCountAsALimiter(t *testing.T) {
	events := rapid.SliceOfN(debtEvents, 1, 40)
	limits := append(everyAlgorithm(20, time.Minute), algorithms.TokenBucket(7, time.Minute).WithBurst(30), algorithms.PerDay(40, nil))
	rapid.Check(t, func(r *rapid.T) {
		plan := events.Draw(r, "events")
		limit := rapid.SampledFrom(limits).Draw(r, "limit")
		share := limit.Step().Share(1, rapid.Int64Range(1, 4).Draw(r, "instances"))
		counts := limit
		if limit.Algorithm().Continuous() {
			counts = algorithms.LimitOf(share)
		}
		w := newLedgerWorld(t)
		settle := func(op algorithms.Op, units int64) (used int64) {
			c := algorithms.Check{Policy: "p", Key: "usr=1", Limit: counts, Op: op, Cost: units}
			checks := []algorithms.Check{c}
			if err := w.memory.Allow(context.Background(), checks); err != nil {
				r.Fatal(err)
			}
			return counts.Burst() - checks[0].Decision.Remaining
		}
		for i, e := range plan {
			w.now += e.after.Microseconds()
			var used int64
			switch e.what {
			case "charge":
				w.record(itemOf(t, algorithms.Check{Policy: "p", Key: "usr=1", Limit: limit, Cost: e.units}), &share, w.now)
				used = settle(algorithms.Force, e.units)
			case "return":
				w.giveBack(limit, e.units)
				used = settle(algorithms.Grant, e.units)
			default:
				for _, sent := range w.popDebts(w.now) {
					sent.ended(errRefused)
				}
				w.hurry()
				used = settle(algorithms.Force, 0)
			}
			var owed int64
			for _, d := range w.debts {
				owed += d.bringTo(w.now)
			}
			if got := min(owed, counts.Burst()); got != used {
				r.Fatalf("%v, share %v, event %d: %d units are owed, a limiter holds %d", limit, algorithms.LimitOf(share), i, owed, used)
			}
		}
	})
}

// A debt that the primary refused includes the units that were admitted meanwhile. It is not sent before its time, and then as one.
func TestLedgerMerges(t *testing.T) {
	for _, limit := range everyAlgorithm(60, time.Hour) {
		synctest.Test(t, func(t *testing.T) {
			w := newLedgerWorld(t)
			w.take(limit, 5)
			sent := w.popDebts(w.now)[0]
			w.now += 1_000
			w.take(limit, 2)
			sent.ended(errRefused)
			w.take(limit, 3)
			time.Sleep(refusedFor - 1)
			if got := w.popped(); got != nil || w.owes() != 1 {
				t.Errorf("%v: got %+v before its time", limit, got)
			}
			time.Sleep(time.Nanosecond)
			items := w.popped()
			if len(items) != 1 || items[0].Cost != 10 || items[0].Op != step.Backfill || w.owes() != 0 {
				t.Errorf("%v: got %+v, and %d keys left; want one backfill of 10 units", limit, items, w.owes())
			}
		})
	}
}

// Units that are returned before the hand-back are not charged. Units that are
// returned later stay charged: the receipt is the memory's.
func TestReturnOfLocalUnits(t *testing.T) {
	for _, l := range everyAlgorithm(100, 9_000*time.Hour) {
		for _, returned := range []int64{0, 1, 4, 7} {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, nil)
				w.trip()
				w.take("usr=1", l, 2)
				taken := w.take("usr=1", l, 7)
				giveBack := algorithms.Check{Key: "usr=1", Limit: l, Op: algorithms.Return, Cost: returned, Decision: taken}
				d, err := w.settle(giveBack)
				if err != nil || d.Receipt.Units() != 7-returned {
					t.Fatalf("got %+v, %v", d, err)
				}
				w.recovers()
				name := fmt.Sprintf("%v, %d of 7 returned", l, returned)
				if got := used(t, w.shared.store, "usr=1", l); got != 9-returned {
					t.Errorf("%s: the primary holds %d, want %d", name, got, 9-returned)
				}
				giveBack.Decision, giveBack.Cost = d, 7-returned
				if _, err := w.settle(giveBack); err != nil {
					t.Fatal(err)
				}
				if got, local := used(t, w.shared.store, "usr=1", l), w.localUse("usr=1", l); got != 9-returned || local != 2 {
					t.Errorf("%s, and the others later: the primary holds %d and the memory %d, want %d and 2", name, got, local, 9-returned)
				}
				if got := w.stats(); got.Owed != 0 || got.Lost != 0 || got.Unknown != 0 {
					t.Errorf("%s: got %+v, want nothing owed", name, got)
				}
			})
		}
	}
}

// Units that are returned while a hand-back is on its way are not charged if Redis
// refuses it. If Redis charges it, they reduce the units that were admitted
// meanwhile. A debt that a Reset has dropped is not sent again.
func TestReturnDuringAHandBack(t *testing.T) {
	for _, l := range everyAlgorithm(100, 9_000*time.Hour) {
		for _, tt := range []struct {
			name     string
			reply    error
			admitted int64 // meanwhile
			reset    bool
			since    int64 // the Reset
			want     int64
		}{
			{"refused", errReadonly, 0, false, 0, 9 - 4},
			{"refused, and more", errReadonly, 6, false, 0, 9 + 6 - 4},
			{"refused, and a Reset", errReadonly, 6, true, 0, 0},
			{"refused, and more since a Reset", errReadonly, 6, true, 3, 3},
			{"charged", nil, 0, false, 0, 9},
			{"charged, and more since a Reset", nil, 0, true, 3, 9 + 3}, // the hand-back comes after the Reset
			{"charged, and fewer", nil, 3, false, 0, 9},
			{"charged, and more", nil, 6, false, 0, 9 + 6 - 4},
			{"lost, and more", errLost, 6, false, 0, 6 - 4},
		} {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, nil)
				w.shared.fails(errRefused)
				w.take("usr=1", l, 2)
				taken := w.take("usr=1", l, 7)
				w.shared.hangs()
				for len(w.shared.overdueCalls()) == 0 {
					time.Sleep(10 * time.Millisecond)
				}
				w.shared.fails(errRefused)
				w.take("usr=1", l, tt.admitted)
				if _, err := w.settle(algorithms.Check{Key: "usr=1", Limit: l, Op: algorithms.Return, Cost: 4, Decision: taken}); err != nil {
					t.Fatal(err)
				}
				if tt.reset {
					w.shared.fails(nil)
					if _, err := w.settle(algorithms.Check{Key: "usr=1", Limit: l, Op: algorithms.Reset}); err != nil {
						t.Fatal(err)
					}
					w.shared.fails(errRefused)
					w.take("usr=1", l, tt.since)
				}
				w.shared.replyAll(tt.reply)
				w.shared.fails(nil)
				time.Sleep(5 * time.Second)
				if got := used(t, w.shared.store, "usr=1", l); got != tt.want {
					t.Errorf("%v, %s: the primary holds %d, want %d", l, tt.name, got, tt.want)
				}
				if got := w.stats(); got.Owed != 0 || got.Trips != 0 {
					t.Errorf("%v, %s: got %+v, want nothing owed, and no open circuit", l, tt.name, got)
				}
			})
		}
	}
}

// Debts that have drained delay no others, and are forgotten soon.
func TestDrainedDebtsDelayNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const drained, others = 20 * handBackKeys, 10
		w := newWorld(t, nil)
		w.trip()
		for i := range drained {
			w.take(fmt.Sprint("drained=", i), algorithms.TokenBucket(1_000, time.Second), 1)
		}
		time.Sleep(10 * time.Second)
		for i := range others {
			w.take(fmt.Sprint("usr=", i), hourly, 1)
		}
		w.shared.fails(nil)
		for w.stats().Open > 0 {
			time.Sleep(time.Millisecond)
		}
		time.Sleep(10 * time.Millisecond)
		for i := range others {
			if got := used(t, w.shared.store, fmt.Sprint("usr=", i), hourly); got != 1 {
				t.Errorf("key %d: the primary holds %d after the outage, want 1", i, got)
			}
		}
		if got := w.stats(); got.Owed != 0 || got.HandedBack != others+circuit.TripAfter {
			t.Errorf("got %+v, want nothing owed", got)
		}
	})
}
