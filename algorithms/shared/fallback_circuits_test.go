// Circuits of several masters, and a primary that flaps.

package shared

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/algorithms/shared/internal/circuit"
	"github.com/penstock-go/penstock/algorithms/shared/internal/trouble"
)

// masters are a primary of two masters. The second one has the keys that begin
// with "b". A call needs the masters of all its keys.
type masters struct {
	*fakePrimary // the first one
	second       *fakePrimary
	gone         atomic.Bool // the second one has no keys any more
}

func (m *masters) of(key string) *fakePrimary {
	if strings.HasPrefix(key, "b") {
		return m.second
	}
	return m.fakePrimary
}

func (m *masters) allow(ctx context.Context, c *call) error {
	for i := range c.items {
		if m.of(c.items[i].Key.Text).circuit.Stops(c.ours) {
			return trouble.ErrOpen
		}
	}
	return m.of(c.items[0].Key.Text).allow(ctx, c)
}

func (m *masters) probeKey(c *circuit.Circuit, text string) (string, bool) {
	if c == m.second.circuit {
		return "b" + text, !m.gone.Load()
	}
	return "a" + text, true
}

// newMasters returns a world whose primary has two masters.
func newMasters(t *testing.T) (*world, *masters) {
	t.Helper()
	w := &world{t: t, shared: newFakePrimary(), memory: newMemory()}
	m := &masters{fakePrimary: w.shared, second: &fakePrimary{store: w.shared.store, deadline: defaultDeadline}}
	w.start(m, nil)
	m.second.circuit = w.fallback.circuits.Add()
	return w, m
}

// opens lets a master refuse calls until its circuit is open.
func (w *world) opens(p *fakePrimary, key string) {
	w.t.Helper()
	p.fails(errRefused)
	for !p.circuit.Stops(false) {
		w.take(key, hourly, 1)
		time.Sleep(defaultDeadline)
	}
}

// The circuits of two masters turn independently: calls bypass a master while its
// own circuit is open, and each is probed by itself.
func TestCircuitsTurnIndependently(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, m := newMasters(t)
		want := func(when string, open int, trips uint64, a, b algorithms.Source) {
			t.Helper()
			if got := w.stats(); got.Open != open || got.Trips != trips {
				t.Errorf("%s: %d circuits are open after %d trips, want %d and %d", when, got.Open, got.Trips, open, trips)
			}
			fromA, _ := m.asked()
			fromB, _ := m.second.asked()
			if d := w.take("a=1", hourly, 1); d.Source != a {
				t.Errorf("%s: the first master's key is decided by %v, want %v", when, d.Source, a)
			}
			if d := w.take("b=1", hourly, 1); d.Source != b {
				t.Errorf("%s: the second master's key is decided by %v, want %v", when, d.Source, b)
			}
			for source, asked := range map[algorithms.Source]bool{algorithms.Shared: true, algorithms.Local: false} {
				toA, _ := m.asked()
				toB, _ := m.second.asked()
				if a == source && (toA > fromA) != asked || b == source && (toB > fromB) != asked {
					t.Errorf("%s: the masters were asked %d and %d times", when, toA-fromA, toB-fromB)
				}
			}
			checks := []algorithms.Check{checkOf("a=2", hourly, 1), checkOf("b=2", hourly, 1)}
			checks[1].Fail = algorithms.FailClosed
			if err := w.Allow(context.Background(), checks); (err == nil) != (open == 0) || err != nil && !errors.Is(err, trouble.ErrOpen) {
				t.Errorf("%s: a call of both masters: got %v with %d open circuits", when, err, open)
			}
			if err := w.Ready(context.Background()); (err == nil) != (open == 0) {
				t.Errorf("%s: Ready says %v with %d open circuits", when, err, open)
			}
		}
		const shared, local = algorithms.Shared, algorithms.Local
		want("at first", 0, 0, shared, shared)
		w.opens(m.second, "b=1")
		want("without the second", 1, 1, shared, local)
		time.Sleep(10 * time.Second)
		if _, probes := m.asked(); probes != 0 {
			t.Errorf("the first master was probed %d times while its circuit was closed", probes)
		}
		w.opens(m.fakePrimary, "a=1")
		want("without both", 2, 2, local, local)
		m.fakePrimary.fails(nil)
		time.Sleep(recoversWithin)
		want("the first is back", 1, 2, shared, local)
		if got := w.fallback.ledger.owes(); got == 0 || used(t, m.store, "a=1", hourly) == 0 || used(t, m.store, "b=2", hourly) != 1 {
			t.Errorf("%d keys are owed; want those of the second master, and no others", got)
		}
		_, before := m.asked()
		m.second.fails(nil)
		time.Sleep(recoversWithin)
		want("both are back", 0, 2, shared, shared)
		if _, probes := m.asked(); probes != before || len(m.second.probedAt()) < 10 {
			t.Errorf("got %d probes of the first master after it was back, and %d of the second", probes-before, len(m.second.probedAt()))
		}
		time.Sleep(2 * handBackEvery)
		if got := w.stats(); got.Owed != 0 || got.Lost != 0 {
			t.Errorf("got %+v, want nothing owed and nothing lost", got)
		}
	})
}

// The circuit of a master that has no keys any more counts no longer.
func TestCircuitOfAMasterThatIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, m := newMasters(t)
		w.opens(m.second, "b=1")
		m.gone.Store(true)
		time.Sleep(recoversWithin)
		_, probes := m.second.asked()
		time.Sleep(10 * time.Second)
		if _, after := m.second.asked(); w.stats().Open != 0 || after != probes {
			t.Errorf("%d circuits are open, and there were %d more probes; want none", w.stats().Open, after-probes)
		}
	})
}

// A primary that stalls for 0.3 s of each second does not keep FailClosed routes
// at 503: they serve at least a third of the requests that come while it is up,
// and all of them 2 s after the last stall.
func TestFlappingPrimary(t *testing.T) {
	t.Parallel()
	for _, flaps := range []struct{ stall, every time.Duration }{
		{300 * time.Millisecond, time.Second},
		{300 * time.Millisecond, 1_250 * time.Millisecond},
		{200 * time.Millisecond, 700 * time.Millisecond},
		{900 * time.Millisecond, 3 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, nil)
			began := time.Now()
			const length = time.Minute
			stalled := func(at time.Duration) bool { return at < length && at%flaps.every < flaps.stall }
			w.shared.troubled(func(ctx context.Context) error {
				at := time.Since(began)
				if !stalled(at) {
					return nil
				}
				select {
				case <-ctx.Done():
					return ctx.Err()
				case <-time.After(flaps.stall - at%flaps.every):
					return nil
				}
			})
			var up, served, late atomic.Int64
			var clients sync.WaitGroup
			for range 5 {
				clients.Go(func() {
					for time.Since(began) < length+10*time.Second {
						at := time.Since(began)
						c := checkOf("usr=1", algorithms.TokenBucket(1_000_000, time.Second), 1)
						c.Fail = algorithms.FailClosed
						err := w.Allow(context.Background(), []algorithms.Check{c})
						if !stalled(at) && at < length {
							if up.Add(1); err == nil {
								served.Add(1)
							}
						}
						if err != nil && at > length+2*time.Second {
							late.Add(1)
						}
						time.Sleep(7 * time.Millisecond)
					}
				})
			}
			clients.Wait()
			t.Logf("%+v: %d of %d requests were served, %d trips", flaps, served.Load(), up.Load(), w.stats().Trips)
			if served.Load()*3 < up.Load() || late.Load() > 0 {
				t.Errorf("%+v: %d of %d requests were served, and %d were refused 2 s after the last stall", flaps, served.Load(), up.Load(), late.Load())
			}
			if w.stats().Trips < 5 {
				t.Errorf("%+v: got %d trips: nothing was tried", flaps, w.stats().Trips)
			}
		})
	}
}
