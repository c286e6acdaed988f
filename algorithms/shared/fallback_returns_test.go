// Returns that the primary could not execute when they came.

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
	"github.com/penstock-go/penstock/algorithms/shared/internal/batch"
	"github.com/penstock-go/penstock/algorithms/shared/internal/circuit"
)

// Each row of the table in fallback_returns.go. A Return that is kept is executed
// once; a Return that is lost leaves its units charged, and its caller learns it.
func TestFailedReturns(t *testing.T) {
	window, holds := algorithms.FixedWindow(10, 10*time.Hour), algorithms.Concurrent(10, 10*time.Hour)
	for name, tt := range map[string]struct {
		limit algorithms.Limit
		err   error
		late  bool // the primary has executed it all the same
		lost  uint64
		holds int64 // at the end
	}{
		"certainly not executed":                      {window, errRefused, false, 0, 0},
		"perhaps, and lost":                           {window, errLost, false, 1, 4},
		"perhaps, and executed":                       {window, errLost, true, 1, 0},
		"named units, certainly not executed":         {holds, errRefused, false, 0, 0},
		"named units, perhaps, and lost":              {holds, errLost, false, 0, 0},
		"named units, perhaps, executed and repeated": {holds, errLost, true, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, nil)
				taken := w.take("usr=1", tt.limit, 4)
				w.shared.fails(tt.err)
				back := algorithms.Check{Key: "usr=1", Limit: tt.limit, Op: algorithms.Return, Cost: 4, Decision: taken}
				d, err := w.settle(back)
				if lost := tt.lost > 0; errors.Is(err, algorithms.ErrUnavailable) != lost || (d.Receipt == taken.Receipt) != lost || w.stats().ReturnsLost != tt.lost {
					t.Errorf("got %+v, %v, %+v; want %d lost", d, err, w.stats(), tt.lost)
				}
				if tt.late {
					back.Policy = "default"
					if err := w.shared.store.Allow(t.Context(), []algorithms.Check{back}); err != nil {
						t.Fatal(err)
					}
				}
				w.shared.fails(nil)
				time.Sleep(2 * time.Second)
				if got := used(t, w.shared.store, "usr=1", tt.limit); got != tt.holds || w.stats().Returns != 0 {
					t.Errorf("the primary holds %d, %+v; want %d", got, w.stats(), tt.holds)
				}
			})
		})
	}
}

// When the circuit closes, all units that have come back are free, and not one more.
func TestReturnsPrecedeTheFirstCall(t *testing.T) {
	for _, l := range everyAlgorithm(10, 10*time.Hour) {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, nil)
			var taken []algorithms.Decision
			for range 10 {
				taken = append(taken, w.take("usr=1", l, 1))
			}
			w.trip()
			waiting, turned := -1, w.fallback.circuits.Turned
			w.fallback.circuits.Turned = func(c *circuit.Circuit, open bool) {
				waiting = w.stats().Returns // no call has met the closed circuit yet
				turned(c, open)
			}
			for _, d := range taken[1:] {
				if _, err := w.settle(algorithms.Check{Key: "usr=1", Limit: l, Op: algorithms.Return, Cost: 1, Decision: d}); err != nil {
					t.Fatal(err)
				}
			}
			w.recovers()
			if waiting != 0 {
				t.Errorf("%v: %d Returns wait when the circuit closes, want none", l, waiting)
			}
			most := int64(1)
			if l.Step().Row == step.LeakyBucket {
				most = 9 // a queue takes back its newest place, and others only in their order
			}
			if got := used(t, w.shared.store, "usr=1", l); got < 1 || got > most {
				t.Errorf("%v: the primary holds %d, want 1 to %d", l, got, most)
			}
		})
	}
}

// A Return is kept although its caller has left meanwhile: no one else would give the
// units back.
func TestReturnOutlivesItsCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, l := newWorld(t, nil), algorithms.FixedWindow(10, time.Hour)
		back := algorithms.Check{Policy: "default", Key: "usr=1", Limit: l, Op: algorithms.Return, Cost: 4, Decision: w.take("usr=1", l, 4)}
		ctx, cancel := context.WithCancel(t.Context())
		w.shared.troubled(func(context.Context) error {
			cancel()
			return errRefused
		})
		if err := w.Allow(ctx, []algorithms.Check{back}); err != nil || w.stats().Returns != 1 {
			t.Errorf("got %v, and %+v, want the Return kept", err, w.stats())
		}
		w.shared.fails(nil)
		time.Sleep(2 * time.Second)
		if got := used(t, w.shared.store, "usr=1", l); got != 0 {
			t.Errorf("the primary holds %d, want none", got)
		}
	})
}

// A take of a concurrent limit whose answer was lost is returned three times: the
// primary may execute it after the first. Takes of other limits are not.
func TestTakesWithoutAnAnswerComeBack(t *testing.T) {
	for _, executes := range []time.Duration{0, 500 * time.Millisecond, 1500 * time.Millisecond} {
		for _, mode := range []algorithms.FailureMode{algorithms.FailLocal, algorithms.FailClosed} {
			synctest.Test(t, func(t *testing.T) {
				w, l := newWorld(t, nil), algorithms.Concurrent(10, 10*time.Hour)
				var sent *call
				w.shared.troubled(func(context.Context) error { return errLost })
				check := checkOf("usr=1", l, 3)
				check.Fail = mode
				c, err := newCall([]algorithms.Check{check})
				if err != nil {
					t.Fatal(err)
				}
				sent = c
				_ = w.fallback.allow(t.Context(), c)
				w.shared.fails(nil)
				time.Sleep(executes)
				w.shared.store.top.(*stateStore).execute(sent)
				if got := used(t, w.shared.store, "usr=1", l); executes > 0 && got != 3 {
					t.Fatalf("the primary holds %d, want the late take", got)
				}
				time.Sleep(4*time.Second - executes)
				if got := used(t, w.shared.store, "usr=1", l); got != 0 || w.stats().Returns != 0 {
					t.Errorf("executed after %v: the primary holds %d, %+v; want none", executes, got, w.stats())
				}
			})
		}
	}
}

// The number of kept Returns and the length of their keys are bounded, and those
// without room count as lost.
func TestKeptReturnsAreBounded(t *testing.T) {
	k, l := newLedger(newReport(new(logRecords).logger(), false)), algorithms.FixedWindow(10, time.Hour)
	it := item{Item: batch.Item{Item: step.Item{Key: step.Key{Policy: "p"}, Limit: *l.Step(), Op: step.Return, Cost: 1, Receipt: step.Receipt{Units: 1}}}}
	for i := range maxReturns + 1 {
		it.Key.Text = fmt.Sprint("usr=", i)
		if kept := k.keep(&it, errRefused); kept != (i < maxReturns) {
			t.Fatalf("the %d. Return: kept is %v", i+1, kept)
		}
	}
	if len(k.returns) != maxReturns || k.returnsLost.Load() != 1 {
		t.Errorf("%d are kept and %d lost, want %d and 1", len(k.returns), k.returnsLost.Load(), maxReturns)
	}
	k.returns = make(map[*keptReturn]bool)
	it.Key.Text = string(make([]byte, maxKept+1))
	if k.keep(&it, errRefused) || k.returnsLost.Load() != 2 {
		t.Errorf("a long key: %d lost, want 2", k.returnsLost.Load())
	}
}

// Close sends what is kept, if the primary answers.
func TestCloseSendsKeptReturns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, l := newWorld(t, nil), algorithms.Concurrent(10, time.Hour)
		taken := w.take("usr=1", l, 4)
		w.shared.fails(errRefused)
		if _, err := w.settle(algorithms.Check{Key: "usr=1", Limit: l, Op: algorithms.Return, Cost: 4, Decision: taken}); err != nil {
			t.Fatal(err)
		}
		w.shared.fails(nil)
		w.fallback.close()
		if got := used(t, w.shared.store, "usr=1", l); got != 0 {
			t.Errorf("the primary holds %d, want none", got)
		}
	})
}
