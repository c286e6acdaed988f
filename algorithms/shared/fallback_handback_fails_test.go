// Hand-backs that fail.

package shared

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/algorithms/internal/step"
	"github.com/penstock-go/penstock/algorithms/shared/internal/circuit"
)

var errReadonly = errors.New("READONLY You can't write against a read only replica")

func failing(err error) func(context.Context) error {
	return func(context.Context) error { return err }
}

// A backfill that was certainly not executed is still owed. A backfill that may
// have been executed is lost. One without an answer is owed until its late reply.
func TestFallbackHandBackFails(t *testing.T) {
	tests := map[string]struct {
		trouble func(context.Context) error
		late    func(p *fakePrimary) // the replies
		lost    bool
	}{
		"lost":                {failing(errLost), nil, true},
		"refused":             {failing(errRefused), nil, false},
		"read-only":           {failing(errReadonly), nil, false},
		"late, and executed":  {hang, func(p *fakePrimary) { p.replyAll(nil) }, false},
		"late, and lost":      {hang, func(p *fakePrimary) { p.replyAll(errLost) }, true},
		"late, and read-only": {hang, func(p *fakePrimary) { p.replyAll(errReadonly) }, false},
		"just too late":       {hang, nil, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, l := newWorld(t, nil), algorithms.FixedWindow(100, 10*time.Hour)
				w.trip()
				w.take("usr=1", l, 7)
				w.shared.onOverdue = func(c *call) {
					if tt.late == nil {
						w.shared.reply(c, nil)
					}
				}
				w.shared.troubled(func(ctx context.Context) error {
					if len(w.shared.backfilled()) > 0 {
						return tt.trouble(ctx)
					}
					return nil
				})
				time.Sleep(recoversWithin)
				if tt.late != nil {
					if got := w.stats(); got.Owed != 2 || got.HandedBack+got.Lost != 0 {
						t.Errorf("before the reply: got %+v, want both keys owed", got)
					}
					tt.late(w.shared)
				}
				w.shared.fails(nil)
				time.Sleep(5 * time.Second)
				got, lost := w.stats(), uint64(0)
				if tt.lost {
					lost = 7 + circuit.TripAfter
				}
				if got.Open > 0 || got.Lost != lost || got.HandedBack+got.Lost != 7+circuit.TripAfter || got.Owed != 0 || got.Unknown != 0 {
					t.Errorf("got %+v, want it closed, and %d units lost", got, lost)
				}
				if n := used(t, w.shared.store, "usr=1", l); n != 0 == tt.lost {
					t.Errorf("the primary holds %d, want 7 if they were not lost", n)
				}
			})
		})
	}
}

// A hand-back that the primary refuses waits for the next tick, also while others
// succeed. It opens no circuit, and delays no other key.
func TestFallbackHandBackWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const others = 5 * handBackKeys
		w := &world{t: t, shared: newFakePrimary(), memory: newMemory()}
		p := &choosy{fakePrimary: w.shared}
		p.refuses.Store(true)
		w.start(p, nil)
		w.trip()
		w.take("usr=refused", hourly, 3)
		for i := range others {
			w.take(fmt.Sprint("usr=", i), hourly, 1)
		}
		w.recovers()
		if got := w.stats(); got.Owed != 1 || got.HandedBack != others+circuit.TripAfter {
			t.Errorf("got %+v, want one key owed, and the %d others handed back", got, others)
		}
		for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
			if d := w.take("usr=1", hourly, 1); d.Source != algorithms.Shared {
				t.Fatalf("got %+v, want the circuit closed", d)
			}
		}
		var at []time.Time
		for i, it := range w.shared.backfilled() {
			if it.Key.Text == "usr=refused" {
				at = append(at, w.shared.sentAt[i])
			}
		}
		if len(at) < 28 || len(at) > 33 {
			t.Errorf("got %d hand-backs in 30 s, want one a second", len(at))
		}
		for i := 1; i < len(at); i++ {
			if pause := at[i].Sub(at[i-1]); pause < refusedFor {
				t.Errorf("hand-back %d came after %v, want about a second", i+1, pause)
			}
		}
		if got := w.stats(); got.Owed != 1 || got.Trips != 1 {
			t.Errorf("got %+v, want one key owed, and one trip", got)
		}
		p.refuses.Store(false)
		time.Sleep(3 * time.Second)
		if got := used(t, w.shared.store, "usr=refused", hourly); got != 3 || w.stats().Owed != 0 {
			t.Errorf("the primary holds %d, %+v; want the 3 units", got, w.stats())
		}
	})
}

// A choosy primary refuses hand-backs of one key, and no other calls.
type choosy struct {
	*fakePrimary
	refuses atomic.Bool
}

func (p *choosy) allow(ctx context.Context, c *call) error {
	if c.items[0].Op == step.Backfill && c.items[0].Key.Text == "usr=refused" && p.refuses.Load() && !p.circuit.Stops(c.ours) {
		p.note(c)
		return errReadonly
	}
	return p.fakePrimary.allow(ctx, c)
}

// A shard of a Cluster that does not answer neither loses nor delays keys of
// other shards.
func TestFallbackHandBackFailsInPart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t, shared: newFakePrimary(), memory: newMemory()}
		dead := &fakePrimary{store: w.shared.store, deadline: defaultDeadline}
		dead.hangs()
		w.start(deadShard{w.shared, dead}, nil)
		dead.circuit = w.shared.circuit
		const keys = 5 * handBackKeys
		w.trip()
		for i := range keys {
			w.take(fmt.Sprint("usr=", i), hourly, 3)
			w.take(fmt.Sprint("dead=", i), hourly, 1)
		}
		w.recovers()
		if got := w.stats(); got.Lost != 0 || got.HandedBack != 3*keys+circuit.TripAfter || got.Owed != keys {
			t.Errorf("got %+v, want the %d keys of the dead shard owed, and no others", got, keys)
		}
		for i := range keys {
			if n := used(t, w.shared.store, fmt.Sprint("usr=", i), hourly); n != 3 {
				t.Fatalf("the primary holds %d of key %d, want 3", n, i)
			}
		}
		dead.replyAll(errLost)
		if got := w.stats(); got.Lost != keys || got.Owed != 0 {
			t.Errorf("got %+v, want the %d units of the dead shard lost", got, keys)
		}
	})
}

// While one master is bypassed, its debts do not hold up those of others, however
// many they are. Once it is back, they follow.
func TestFallbackHandBackPassesBypassedMasters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t, shared: newFakePrimary(), memory: newMemory()}
		dead := &fakePrimary{store: w.shared.store, deadline: defaultDeadline}
		defer func() { dead.replyAll(errLost) }()
		w.start(deadShard{w.shared, dead}, nil)
		dead.circuit = w.fallback.circuits.Add()
		w.bypass(dead.circuit)
		const keys = 50 * handBackKeys
		w.trip()
		for i := range keys {
			w.take(fmt.Sprint("dead=", i), hourly, 1)
		}
		w.take("usr=1", hourly, 1)
		w.recovers()
		if got := w.stats(); got.HandedBack != 1+circuit.TripAfter || got.Owed != keys {
			t.Errorf("got %+v, want the %d keys of the bypassed master owed, and no others", got, keys)
		}
		w.fallback.circuits.Turned = nil // no goroutine probes this master
		if !dead.circuit.Try(func() error { return nil }) {
			t.Fatal("the master is bypassed after a probe that succeeded")
		}
		time.Sleep(bypassedFor + 2*handBackEvery)
		if got := w.stats(); got.HandedBack != keys+1+circuit.TripAfter || got.Owed != 0 {
			t.Errorf("got %+v, want nothing owed once the master is back", got)
		}
	})
}

// A deadShard answers calls of some keys by another primary.
type deadShard struct {
	*fakePrimary
	dead *fakePrimary
}

func (d deadShard) allow(ctx context.Context, c *call) error {
	if strings.HasPrefix(c.items[0].Key.Text, "dead=") {
		return d.dead.allow(ctx, c)
	}
	return d.fakePrimary.allow(ctx, c)
}

// When the circuit closes, the primary already holds the units that were
// admitted without it, however long the outage was. A hand-back that is on its
// way at that instant may end some milliseconds later, so one of three tries is
// enough.
func TestFallbackHandsBackBeforeItAsks(t *testing.T) {
	for _, outage := range []time.Duration{300 * time.Millisecond, 2 * time.Second, 30 * time.Second} {
		for _, l := range everyAlgorithm(100, 9_000*time.Hour) {
			var held int64
			for try := 0; try < 3 && held != 40; try++ {
				synctest.Test(t, func(t *testing.T) { held = heldAtClosing(t, l, outage) })
			}
			if held != 40 {
				t.Errorf("%v, an outage of %v: the primary holds %d as the circuit closes, want 40", l, outage, held)
			}
		}
	}
}

// heldAtClosing returns what a slow primary holds when the circuit closes, after
// an outage in which the memory has admitted 40 units.
func heldAtClosing(t *testing.T, l algorithms.Limit, outage time.Duration) int64 {
	w := newWorld(t, nil)
	w.trip()
	for range 10 {
		time.Sleep(outage / 10)
		w.take("usr=1", l, 4)
	}
	w.shared.troubled(func(context.Context) error { time.Sleep(20 * time.Millisecond); return nil })
	for w.stats().Open > 0 {
		time.Sleep(time.Millisecond)
	}
	return used(t, w.shared.store, "usr=1", l)
}

// bypass opens the circuit of a master that no goroutine probes.
func (w *world) bypass(c *circuit.Circuit) {
	turned := w.fallback.circuits.Turned
	w.fallback.circuits.Turned = nil
	for range circuit.TripAfter {
		end, _ := c.Begin()
		time.Sleep(defaultDeadline)
		end(errRefused)
	}
	w.fallback.circuits.Turned = turned
}
