// Round trips that count in no circuit: expiries of a late process, and calls of
// the limiter itself.

package shared

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/algorithms/shared/internal/trouble"
	"github.com/penstock-go/penstock/internal/redistest"
)

// An expiry is excused if its timer fires more than 10 ms late, unless all
// expiries have been late for a second.
func TestCircuitExcusesLateExpiries(t *testing.T) {
	type expiry struct {
		at, late int64 // ms
		want     bool
	}
	every := func(gap, from, to int64, e expiry) (all []expiry) {
		for e.at = from; e.at < to; e.at += gap {
			all = append(all, e)
		}
		return all
	}
	join := func(parts ...[]expiry) (all []expiry) {
		for _, part := range parts {
			all = append(all, part...)
		}
		return all
	}
	late, counts, punctualOne := expiry{late: 11, want: true}, expiry{late: 11}, expiry{late: 10}
	tests := map[string][]expiry{
		"punctual":                       every(50, 0, 5_000, punctualOne),
		"early":                          {{0, -1, false}},
		"late":                           {{0, 11, true}},
		"late by far":                    {{0, 10_000, true}},
		"several at one instant":         {{7, 30, true}, {7, 31, true}, {7, 32, true}},
		"always late":                    join(every(50, 0, 1_000, late), every(50, 1_000, 9_000, counts)),
		"late now and then":              every(1_001, 0, 50_000, late),
		"late once a second":             join(every(1_000, 0, 1_000, late), every(1_000, 1_000, 9_000, counts)),
		"a punctual one in between":      join(every(50, 0, 900, late), every(1, 900, 901, punctualOne), every(50, 950, 1_950, late), every(50, 1_950, 3_000, counts)),
		"a punctual one after a second":  join(every(50, 0, 1_000, late), every(50, 1_000, 2_000, counts), every(1, 2_000, 2_001, punctualOne), every(50, 2_050, 3_050, late), every(50, 3_050, 4_000, counts)),
		"silence for more than a second": join(every(50, 0, 1_000, late), every(50, 1_000, 2_000, counts), every(50, 3_000, 4_000, late), every(50, 4_000, 5_000, counts)),
	}
	for name, expiries := range tests {
		cs := newCircuits(defaultDeadline)
		c, other, excused := cs.add(), cs.add(), int64(0)
		for i, e := range expiries {
			now := 1_000 + e.at*1_000
			if got := c.excuses(now-e.late*1_000, now); got != e.want {
				t.Errorf("%s: expiry %d, at %d ms and %d ms late: excused is %v, want %v", name, i, e.at, e.late, got, e.want)
			}
			if e.want {
				excused++
			}
		}
		if got := c.excused.Swap(0); got != excused || c.excused.Swap(0) != 0 || other.excused.Swap(0) != 0 {
			t.Errorf("%s: got %d excused expiries, want %d, once", name, got, excused)
		}
	}
	if c := newCircuits(defaultDeadline).add(); c.excuses(0, punctual) || !c.excuses(0, punctual+1) {
		t.Error("an expiry is late from one µs after 10 ms")
	}
}

// The line of an outage has the number of excused expiries. An excused expiry
// neither opens a circuit nor keeps it closed.
func TestCircuitReportsExcusedExpiries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil)
		c := w.shared.circuit
		for range 100 {
			end, err := c.begin()
			if err != nil {
				t.Fatal(err)
			}
			if c.excuses(0, 20_000) {
				end(trouble.ErrProcessLate)
			}
			time.Sleep(10 * time.Millisecond)
		}
		if got := w.stats(); got.Trips != 0 {
			t.Fatalf("got %+v, want no trip", got)
		}
		w.trip()
		synctest.Wait()
		if got := w.log.attr(logUnavailable, "excused"); got != int64(100) {
			t.Errorf("logged %v excused expiries, want 100", got)
		}
	})
}

// Calls of the limiter itself count in no circuit. An open circuit stops them,
// too, unless it is being tried.
func TestCircuitIgnoresOwnCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := redistest.Script(nil, redistest.Fail(errRefused))
		options := (&Options{Deadline: 5 * time.Millisecond}).withDefaults()
		r := redisLayerOf(client, &options, newReport((&logRecords{}).logger(), false))
		ask := func(own bool) error {
			c, err := newCall([]algorithms.Check{checkOf("usr=1", hourly, 1)})
			if err != nil {
				t.Fatal(err)
			}
			defer c.free()
			c.ours = own
			return r.allow(t.Context(), c)
		}
		for range 50 {
			if err := ask(true); !errors.Is(err, errRefused) {
				t.Fatalf("got %v, want the client's error", err)
			}
			time.Sleep(time.Millisecond)
		}
		circuit := r.lane("").circuit
		if circuit.open.Load() {
			t.Fatal("the limiter's own calls have opened the circuit")
		}
		redistest.Until(t, "users' calls open the circuit", func() bool {
			_ = ask(false)
			return circuit.open.Load()
		})
		sent := len(client.Trips())
		if err := ask(true); !errors.Is(err, trouble.ErrOpen) || len(client.Trips()) != sent {
			t.Errorf("got %v, and %d more trips; want trouble.ErrOpen", err, len(client.Trips())-sent)
		}
		tried := false
		redistest.Until(t, "the circuit may be tried", func() bool {
			circuit.try(func() error { tried = true; return ask(true) })
			return tried
		})
		if len(client.Trips()) != sent+1 || !circuit.open.Load() {
			t.Errorf("got %d trips of an attempt that fails, open %v; want one, and open", len(client.Trips())-sent, circuit.open.Load())
		}
	})
}
