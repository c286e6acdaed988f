// Forces that were charged without the primary.

package shared

import (
	"math/rand/v2"
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
		refused := itemOf(t, algorithms.Check{Policy: "p", Key: "usr=3", Limit: algorithms.FixedWindow(9, time.Hour), Op: algorithms.Force, Cost: 1})
		refused.decision.Allowed = true // Undecided: there was no room
		w.fallback.owed.record(refused, &algorithms.Check{Limit: algorithms.FixedWindow(9, time.Hour)}, w.fallback.now())
		if got := w.stats().Owed; got != 0 {
			t.Errorf("got %d keys owed, want none", got)
		}
	})
}

// The state of a forced bucket follows from its figures.
func TestLedgerReadsBuckets(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 1))
	w := newLedgerWorld(t)
	for i := range 2_000 {
		l := []algorithms.Limit{
			algorithms.TokenBucket(7, time.Second).WithBurst(9), algorithms.LeakyBucket(3, time.Minute).WithBurst(50),
			algorithms.TokenBucket(100_000, time.Second),
		}[r.IntN(3)]
		ask := func(op algorithms.Op, cost int64) (*item, *algorithms.Check) {
			return w.charged(algorithms.Check{Key: "usr=1", Limit: l, Op: op, Cost: cost})
		}
		for range 1 + r.IntN(3) { // into debt, sometimes
			ask(algorithms.Force, 1+r.Int64N(l.Burst()))
			w.now += r.Int64N(l.Window().Microseconds())
		}
		forced, local := ask(algorithms.Force, 1+r.Int64N(4))
		s := bucketState(forced, local, w.now)
		// A limit of the same rate that admits more shows the state.
		l = l.WithBurst(4 * l.Burst())
		taken, _ := ask(algorithms.Take, 1)
		ideal := taken.decision.Receipt.Step()
		if ideal.Units != 1 {
			t.Fatalf("seed %d, step %d: got %+v", seed, i, taken.decision)
		}
		if ago := ideal.T - s.T; s.N != ideal.N-1 || ago < 0 || ago > 3 {
			t.Errorf("seed %d, step %d, %v: got n %d, and %d µs older; want n %d, and no more than a few", seed, i, l, s.N, ago, ideal.N-1)
		}
		ask(algorithms.Reset, 0)
	}
}
