package shared

import (
	"context"
	"github.com/penstock-go/penstock/algorithms"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"
)

// What was forced without the primary is owed as what was taken is.
func TestFallbackHandsBackForces(t *testing.T) {
	tests := map[string]struct {
		trouble error
		forced  algorithms.Check
		want    int64 // of these and the 5 units that are taken
		told    bool
	}{
		"surely not executed": {errRefused, algorithms.Check{Cost: 7}, 12, true},
		"closed":              {errRefused, algorithms.Check{Cost: 7, Fail: algorithms.FailClosed}, 12, true},
		"more than fits":      {errRefused, algorithms.Check{Cost: 140}, 100, true},
		"more than any limit": {errRefused, algorithms.Check{Cost: 1 << 40}, 100, true},
		"maybe executed":      {errLost, algorithms.Check{Cost: 7}, 5, false},
		"open":                {errRefused, algorithms.Check{Cost: 7, Fail: algorithms.FailOpen}, 5, false},
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

// A force of nobody, one of nothing, and one for which the secondary has no room owe nothing.
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
		w.owed.record(&algorithms.Check{Key: "usr=3", Limit: algorithms.FixedWindow(9, time.Hour), Op: algorithms.Force, Cost: 1, Decision: algorithms.Decision{Allowed: true}}, algorithms.FixedWindow(9, time.Hour), w.now())
		if got := w.stats().Owed; got != 0 {
			t.Errorf("got %d keys owed, want none", got)
		}
	})
}

// The state of a bucket is that which its figures tell.
func TestLedgerReadsBuckets(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 1))
	now := someInstant
	m, err := algorithms.NewMemory(&algorithms.MemoryOptions{Now: func() time.Time { return time.UnixMicro(now) }})
	if err != nil {
		t.Fatal(err)
	}
	_ = m.Close()
	for step := range 2_000 {
		l := []algorithms.Limit{
			algorithms.TokenBucket(7, time.Second).WithBurst(9), algorithms.LeakyBucket(3, time.Minute).WithBurst(50), algorithms.TokenBucket(100_000, time.Second),
		}[r.IntN(3)]
		ask := func(op algorithms.Op, cost int64) algorithms.Check {
			c := [1]algorithms.Check{{Policy: "p", Key: "usr=1", Limit: l, Op: op, Cost: cost}}
			if err := m.Allow(context.Background(), c[:]); err != nil {
				t.Fatal(err)
			}
			return c[0]
		}
		for range 1 + r.IntN(3) { // into debt, sometimes
			ask(algorithms.Force, 1+r.Int64N(l.Burst()))
			now += r.Int64N(l.Window().Microseconds())
		}
		forced := ask(algorithms.Force, 1+r.Int64N(4))
		s := forced.bucket(now, &l.terms)
		// A limit of the same rate that admits more shows the state.
		l = l.WithBurst(4 * l.Burst())
		d := ask(algorithms.Take, 1).Decision
		if d.Receipt.Units() != 1 {
			t.Fatalf("seed %d, step %d: got %+v", seed, step, d)
		}
		ideal := state{t: d.Receipt.t, n: d.Receipt.n - 1, f: d.Receipt.f}
		if ago := ideal.t - s.t; s.n != ideal.n || ago < 0 || ago > 3 {
			t.Errorf("seed %d, step %d, %v: got n %d, and %d µs older; want n %d, and no more than a few", seed, step, l, s.n, ago, ideal.n)
		}
		ask(algorithms.Reset, 0)
	}
}
