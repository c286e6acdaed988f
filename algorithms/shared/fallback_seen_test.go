// The use of keys that the primary last reported, from which the memory starts.

package shared

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/penstock-go/penstock/algorithms"
)

// drain takes single units until one is denied.
func (w *world) drain(key string, l algorithms.Limit) (units int64) {
	w.t.Helper()
	for w.take(key, l, 1).Allowed {
		units++
	}
	return units
}

// A key that was spent in the primary a moment ago has no second quota.
func TestFallbackPreloads(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		instances   int
		spent       int64         // of 100, in the primary
		wait        time.Duration // from the opening to the first local take
		least, most int64         // that is then admitted at once
	}{
		"exhausted":                    {1, 100, 0, 0, 0},
		"exhausted, one of four":       {4, 100, 0, 0, 0},
		"nearly spent":                 {1, 90, 0, 10, 10},
		"nearly spent, one of four":    {4, 90, 0, 2, 2},
		"half spent":                   {1, 50, 0, 50, 50},
		"hardly used":                  {1, 10, 0, 90, 100}, // the table does not remember that
		"hardly used, one of four":     {4, 10, 0, 23, 25},
		"idle":                         {1, 0, 0, 100, 100},
		"long ago":                     {1, 100, 20 * time.Minute, 100, 100},
		"long ago, one of four":        {4, 100, 20 * time.Minute, 25, 25},
		"above the limit, one of four": {4, 101, 0, 0, 0},
	}
	for name, tt := range tests {
		for _, l := range everyAlgorithm(100, 10*time.Minute) {
			t.Run(fmt.Sprintf("%s/%v", name, l.Algorithm()), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w := newWorld(t, &Options{Instances: tt.instances})
					for range tt.spent {
						w.take("usr=1", l, 1)
					}
					w.trip()
					time.Sleep(tt.wait)
					if got := w.drain("usr=1", l); got < tt.least || got > tt.most {
						t.Errorf("admitted %d, want %d to %d", got, tt.least, tt.most)
					}
				})
			})
		}
	}
}

// Units that refill in the primary meanwhile are free here, too.
func TestFallbackPreloadsWhatIsHeldByNow(t *testing.T) {
	t.Parallel()
	tests := []struct {
		limit       algorithms.Limit
		least, most int64 // admitted half a window after it was spent, at once
	}{
		{algorithms.TokenBucket(100, time.Hour), 50, 50},
		{algorithms.LeakyBucket(100, time.Hour), 50, 50},
		{algorithms.SlidingWindowCounter(100, time.Hour), 0, 50},
		{algorithms.SlidingWindowLog(100, time.Hour), 0, 50},
		{algorithms.FixedWindow(100, time.Hour), 0, 0},
	}
	for _, tt := range tests {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, nil)
			for range 100 {
				w.take("usr=1", tt.limit, 1)
			}
			w.trip()
			time.Sleep(30*time.Minute - 100*time.Millisecond)
			if got := w.drain("usr=1", tt.limit); got < tt.least || got > tt.most {
				t.Errorf("%v: admitted %d, want %d to %d", tt.limit, got, tt.least, tt.most)
			}
		})
	}
}

// Single failures, between calls that the primary decides, charge what it holds
// once, and not each time.
func TestFallbackPreloadsOnce(t *testing.T) {
	for _, l := range everyAlgorithm(100, time.Hour) {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, nil)
			for range 60 {
				w.take("usr=1", l, 1)
			}
			for i := range int64(10) {
				w.shared.fails(errWrongType)
				if d := w.take("usr=1", l, 1); !d.Allowed || d.Source != algorithms.Local {
					t.Fatalf("%v: failure %d: got %+v, want it admitted locally", l, i, d)
				}
				// The primary's answers are noted again, the local takes beside.
				if got := w.localUse("usr=1", l); got > 61+2*i {
					t.Fatalf("%v: failure %d: %d are in use, want the 60 of the primary once", l, i, got)
				}
				w.shared.fails(nil)
				w.take("usr=1", l, 1)
			}
		})
	}
}

// A grant or a reset counts in the next outage, as spent units do.
func TestFallbackForgetsWhatWasCredited(t *testing.T) {
	for _, op := range []algorithms.Op{algorithms.Grant, algorithms.Reset} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, nil)
			l := algorithms.TokenBucket(10, time.Hour)
			w.drain("usr=1", l)
			if err := w.Allow(context.Background(), []algorithms.Check{{Policy: "default", Key: "usr=1", Limit: l, Cost: 10, Op: op}}); err != nil {
				t.Fatal(err)
			}
			w.trip()
			if got := w.drain("usr=1", l); got != 10 {
				t.Errorf("after a %v: admitted %d, want 10", op, got)
			}
		})
	}
}

// Units that an operator credits after an outage are credited in the next outage,
// too, whatever was admitted in the last one.
func TestFallbackCreditsTheMemory(t *testing.T) {
	for op, want := range map[algorithms.Op]int64{algorithms.Reset: 10, algorithms.Grant: 4} {
		for _, l := range everyAlgorithm(10, 100*time.Hour) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, nil)
				w.trip()
				if got := w.drain("usr=1", l); got != 10 {
					t.Fatalf("%v: got %d admitted, want 10", l, got)
				}
				w.recovers()
				if _, err := w.settle(algorithms.Check{Key: "usr=1", Limit: l, Op: op, Cost: 4}); err != nil {
					t.Fatal(err)
				}
				w.trip()
				if got := w.drain("usr=1", l); got != want {
					t.Errorf("%v, %v: got %d admitted, want %d", l, op, got, want)
				}
			})
		}
	}
}

// seenItem is a take that the primary has answered: the key has spent all.
func seenItem(t *testing.T, policy, key string, l algorithms.Limit) *call {
	t.Helper()
	c, err := newCall([]algorithms.Check{{Policy: policy, Key: key, Limit: l, Cost: 1}})
	if err != nil {
		t.Fatal(err)
	}
	c.items[0].decision = algorithms.Decision{Source: algorithms.Shared, ResetAfter: time.Hour}
	return c
}

// Keys of several policies, and of several limits, are distinguished.
func TestSeenTableTellsKeysApart(t *testing.T) {
	table, l, now := new(seenTable), algorithms.TokenBucket(10, time.Hour), someInstant
	clock := func() int64 { return now }
	seen := func(c *call) (used int64) {
		table.forgetAfter(&c.items[0], now, func(n int64) { used = n })
		return used
	}
	table.note(seenItem(t, "a", "usr=1", l), clock)
	for _, other := range []*call{
		seenItem(t, "b", "usr=1", l), seenItem(t, "a", "usr=2", l), seenItem(t, "a", "usr=1", algorithms.LeakyBucket(10, time.Hour)),
	} {
		if got := seen(other); got != 0 {
			t.Errorf("%+v: got %d, want nothing: it is another key", other.items[0].Key, got)
		}
	}
	changed := seenItem(t, "a", "usr=1", algorithms.TokenBucket(5, time.Hour))
	if got := seen(changed); got != 5 {
		t.Errorf("got %d of the changed limit, want all of 5", got)
	}
	if got := seen(changed); got != 0 {
		t.Errorf("got %d once more, want nothing: it was forgotten", got)
	}
}

// The fewer keys are spent, the fewer are forgotten.
func TestSeenTableForgetsFew(t *testing.T) {
	for keys, most := range map[int]int{2: 0, 1_000: 8, 10_000: 250} { // 0.2 and 130 are to be expected
		table, now := new(seenTable), someInstant
		clock := func() int64 { return now }
		calls := make([]*call, keys)
		for i := range calls {
			calls[i] = seenItem(t, "api", fmt.Sprint("usr=", i), algorithms.TokenBucket(10, time.Hour))
			table.note(calls[i], clock)
			table.note(calls[i], clock) // again, which takes no other's place
		}
		forgotten := keys
		for _, c := range calls {
			table.forgetAfter(&c.items[0], now, func(int64) { forgotten-- })
		}
		if forgotten > most {
			t.Errorf("%d of %d keys are forgotten, want at most %d", forgotten, keys, most)
		}
	}
}

// A gatedForce is a memory whose forces wait.
type gatedForce struct {
	algorithms.Limiter
	arrived, open chan struct{}
}

func (g *gatedForce) Allow(ctx context.Context, checks []algorithms.Check) error {
	if checks[0].Op == algorithms.Force {
		g.arrived <- struct{}{}
		<-g.open
	}
	return g.Limiter.Allow(ctx, checks)
}

// When calls ask for a spent key at once as the outage begins, none is answered
// before the memory holds the spent units.
func TestFallbackPreloadsBeforeItAdmits(t *testing.T) {
	g := &gatedForce{newMemory(), make(chan struct{}, 2), make(chan struct{})}
	w := &world{t: t, shared: newFakePrimary(), memory: g}
	w.start(w.shared, nil)
	spent := algorithms.TokenBucket(1, time.Hour)
	w.take("usr=1", spent, 1)
	w.shared.fails(errRefused)
	asked := func() <-chan algorithms.Decision {
		answer := make(chan algorithms.Decision, 1)
		go func() {
			d, err := algorithms.Allow(context.Background(), w, "usr=1", spent)
			if err != nil {
				t.Error(err)
			}
			answer <- d
		}()
		return answer
	}
	first := asked()
	<-g.arrived
	second := asked()
	select {
	case d := <-second:
		t.Fatalf("got %+v, before the memory held what was spent", d)
	case <-time.After(50 * time.Millisecond): // it waits
	}
	close(g.open)
	for _, answer := range []<-chan algorithms.Decision{first, second} {
		if d := <-answer; d.Allowed {
			t.Errorf("got %+v, of a key that was spent", d)
		}
	}
}
