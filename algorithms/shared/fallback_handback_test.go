// Hand-backs, seen from the primary.

package shared

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/algorithms/shared/internal/circuit"
)

// After an outage the primary holds at least the units that it would hold if it had decided every call, and at most as
// if the units of the outage had been taken at the hand-back.
func TestFallbackHandsBack(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		window        time.Duration
		before        int64 // units taken from the primary
		during, apart int64 // takes of one unit in the outage, every so many ms
	}{
		"nothing before":            {time.Hour, 0, 30, 10},
		"on top of others":          {time.Hour, 20, 30, 10},
		"a lot before":              {time.Hour, 60, 30, 10},
		"all that is left":          {time.Hour, 60, 40, 10},
		"some of it drained":        {10 * time.Minute, 20, 30, 500},
		"much of it drained":        {time.Minute, 20, 80, 250},
		"a window turned":           {45 * time.Second, 30, 50, 500},
		"as much as it refills":     {20 * time.Second, 0, 120, 210},
		"several windows turned":    {7 * time.Second, 30, 80, 300},
		"all of it drained":         {5 * time.Second, 30, 10, 10},
		"nothing was admitted":      {time.Hour, 20, 0, 0},
		"one, a moment before":      {time.Minute, 0, 55, 500},
		"more than a log's entries": {time.Hour, 0, 90, 100},
	}
	for name, tt := range tests {
		for _, l := range everyAlgorithm(100, tt.window) {
			t.Run(fmt.Sprintf("%s/%v", name, l.Algorithm()), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					// What the primary would hold without an outage, and with all its takes at the hand-back.
					w, least, most := newWorld(t, nil), newMemory(), newMemory()
					for range tt.before {
						w.take("usr=1", l, 1)
						take(t, least, "usr=1", l, 1)
						take(t, most, "usr=1", l, 1)
					}
					w.trip()
					opened := time.Now()
					for range tt.during {
						if d := w.take("usr=1", l, 1); !d.Allowed || d.Source != algorithms.Local {
							t.Fatalf("got %+v, want it admitted locally", d)
						}
						take(t, least, "usr=1", l, 1)
						time.Sleep(time.Duration(tt.apart) * time.Millisecond)
					}
					w.shared.fails(nil)
					time.Sleep(time.Until(opened.Add(32 * time.Second)))
					for range tt.during {
						take(t, most, "usr=1", l, 1)
					}
					slack := handBackSlack(l, tt.before, tt.during)
					for range 8 {
						got, from, to := used(t, w.shared.store, "usr=1", l), used(t, least, "usr=1", l), used(t, most, "usr=1", l)
						if got > to || got < from-slack {
							t.Errorf("%v after it opened: the primary holds %d, want %d to %d", time.Since(opened), got, from, to)
						}
						time.Sleep(tt.window / 7)
					}
					if got := w.stats(); got.Owed != 0 || got.Lost != 0 {
						t.Errorf("got %+v, want nothing owed any more", got)
					}
				})
			})
		}
	}
}

// handBackSlack is how many units fewer the primary may hold after a hand-back.
func handBackSlack(l algorithms.Limit, before, during int64) int64 {
	switch {
	case l.Algorithm().Continuous() && before > 0:
		// These and the local units drain at the same time.
		return min(before, 1+int64(33*time.Second/(l.Window()/100)))
	}
	return 0
}

// After a Reset the primary does not receive units that were admitted before
// it.
func TestFallbackForgetsDebtsOnReset(t *testing.T) {
	for _, l := range everyAlgorithm(100, 10*time.Hour) {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, nil)
			w.shared.fails(errRefused) // too rarely to open the circuit
			w.take("usr=1", l, 10)
			w.take("usr=2", l, 10)
			w.shared.fails(nil)
			if got := w.stats().Owed; got != 2 {
				t.Fatalf("%v: %d keys are owed, want 2", l, got)
			}
			if _, err := w.settle(algorithms.Check{Key: "usr=1", Limit: l, Op: algorithms.Reset}); err != nil {
				t.Fatal(err)
			}
			time.Sleep(10 * time.Second)
			if got, want := used(t, w.shared.store, "usr=1", l), int64(0); got != want {
				t.Errorf("%v: the primary holds %d, want %d after the Reset", l, got, want)
			}
			if got := used(t, w.shared.store, "usr=2", l); got != 10 {
				t.Errorf("%v: the primary holds %d of another key, want 10", l, got)
			}
		})
	}
}

// Units are handed back once, though there may be several outages.
func TestFallbackHandsBackOnce(t *testing.T) {
	for _, l := range everyAlgorithm(100, 10*time.Hour) {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, nil)
			for outage := range int64(3) {
				w.trip()
				for range 10 {
					w.take("usr=1", l, 1)
				}
				w.recovers()
				time.Sleep(10 * time.Second)
				if got := used(t, w.shared.store, "usr=1", l); got != 10*(outage+1) {
					t.Errorf("%v: after %d outages the primary holds %d, want 10 of each", l, outage+1, got)
				}
			}
			// The calls that tripped the circuit were refused, and so not executed.
			if got := w.stats().HandedBack; got != 3*(10+circuit.TripAfter) {
				t.Errorf("%v: handed back %d units, want %d", l, got, 3*(10+circuit.TripAfter))
			}
		})
	}
}

// A call that may have been executed is not charged again.
func TestFallbackDoesNotChargeTwice(t *testing.T) {
	for _, l := range everyAlgorithm(100, 10*time.Hour) {
		for name, trouble := range map[string]func(*fakePrimary){
			"lost": func(s *fakePrimary) { s.fails(errLost) },
			"late": func(s *fakePrimary) { s.hangs() },
			"its own key's error": func(s *fakePrimary) {
				s.fails(errWrongType)
			},
		} {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, nil)
				trouble(w.shared)
				for range circuit.TripAfter - 1 {
					w.take("usr=1", l, 1)
				}
				w.shared.fails(nil)
				time.Sleep(10 * time.Second)
				if got := w.stats(); got.Owed != 0 || got.HandedBack != 0 {
					t.Errorf("%v, %s: got %+v, want nothing handed back", l, name, got)
				}
				if got := w.localUse("usr=1", l); got != circuit.TripAfter-1 {
					t.Errorf("%v, %s: %d are in use locally, want %d", l, name, got, circuit.TripAfter-1)
				}
			})
		}
	}
}

// A single call that was surely not executed is handed back soon, with the circuit
// closed.
func TestFallbackHandsBackWhileClosed(t *testing.T) {
	for _, l := range everyAlgorithm(100, 10*time.Hour) {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, nil)
			w.shared.fails(errRefused)
			w.take("usr=1", l, 3)
			w.shared.fails(nil)
			time.Sleep(2 * handBackEvery)
			if got := used(t, w.shared.store, "usr=1", l); got != 3 || w.stats().HandedBack != 3 {
				t.Errorf("%v: the primary holds %d, %+v; want 3", l, got, w.stats())
			}
		})
	}
}

// Others have used up the limit in the primary meanwhile: there is no debt.
func TestFallbackHandsBackWithoutDebt(t *testing.T) {
	for _, l := range everyAlgorithm(100, 10*time.Hour) {
		for _, others := range []int64{60, 100} {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, nil)
				w.trip()
				for range 50 {
					w.take("usr=1", l, 1)
				}
				take(t, w.shared.store, "usr=1", l, others)
				w.recovers()
				d := take(t, w.shared.store, "usr=1", l, 0)
				if d.Remaining != 0 || !d.Allowed {
					t.Errorf("%v, others %d: got %+v, want it full, and without debt", l, others, d)
				}
			})
		}
	}
}
