// Forces that were charged without the primary.

package shared

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/penstock-go/penstock/algorithms"
)

// Units that were forced without the primary are owed as taken units are.
func TestFallbackHandsBackForces(t *testing.T) {
	tests := map[string]struct {
		trouble error
		forced  algorithms.Check
		want    int64 // of these and the 5 units that are taken
	}{
		"surely not executed": {errRefused, algorithms.Check{Cost: 7}, 12},
		"closed":              {errRefused, algorithms.Check{Cost: 7, Fail: algorithms.FailClosed}, 12},
		"more than fits":      {errRefused, algorithms.Check{Cost: 140}, 100},
		"more than any limit": {errRefused, algorithms.Check{Cost: 1 << 40}, 100},
		"maybe executed":      {errLost, algorithms.Check{Cost: 7}, 5},
		"open":                {errRefused, algorithms.Check{Cost: 7, Fail: algorithms.FailOpen}, 5},
	}
	for name, tt := range tests {
		for _, l := range everyAlgorithm(100, 10*time.Hour) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, nil)
				w.shared.fails(errRefused)
				w.take("usr=1", l, 3)
				w.shared.fails(tt.trouble)
				tt.forced.Key, tt.forced.Limit, tt.forced.Op = "usr=1", l, algorithms.Force
				if _, err := w.settle(tt.forced); err != nil {
					t.Fatal(err)
				}
				w.shared.fails(errRefused)
				if d := take(t, w.Limiter, "usr=1", l, 2); !d.Allowed && tt.want < 100 {
					t.Fatalf("%s, %v: got %+v, want it admitted", name, l, d)
				}
				w.shared.fails(nil)
				time.Sleep(2 * handBackEvery)
				if got := used(t, w.shared.store, "usr=1", l); got != tt.want || w.stats().Owed != 0 {
					t.Errorf("%s, %v: the primary holds %d, want %d: %+v", name, l, got, tt.want, w.stats())
				}
				if d := take(t, w.shared.store, "usr=1", l, 0); !d.Allowed {
					t.Errorf("%s, %v: got %+v, want no debt", name, l, d)
				}
			})
		}
	}
}

// A roomless limiter has no room for any key.
type roomless struct{}

func (roomless) Allow(_ context.Context, checks []algorithms.Check) error {
	for i := range checks {
		checks[i].Decision = algorithms.Decision{Allowed: true}
	}
	return nil
}

// A force of nobody, a force of nothing, and a force for which the memory has no
// room owe nothing.
func TestFallbackOwesNoForceThatWasNot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil)
		w.shared.fails(errRefused)
		for _, c := range []algorithms.Check{{Key: "usr=1", Limit: algorithms.Nobody(), Cost: 7}, {Key: "usr=2", Limit: algorithms.FixedWindow(9, time.Hour)}} {
			c.Op = algorithms.Force
			if _, err := w.settle(c); err != nil {
				t.Fatal(err)
			}
		}
		w.fallback.memory = roomless{}
		for _, trouble := range []error{errRefused, errLost} {
			w.shared.fails(trouble)
			d, err := w.settle(algorithms.Check{Key: "usr=3", Limit: hourly, Op: algorithms.Force, Cost: 1})
			if err != nil || d.Source != algorithms.Undecided {
				t.Fatalf("got %+v, %v, want no room for it", d, err)
			}
		}
		if got := w.stats(); got.Owed != 0 || got.Unknown != 0 {
			t.Errorf("got %+v, want nothing owed, and nothing unknown", got)
		}
	})
}
