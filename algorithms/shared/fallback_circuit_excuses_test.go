// Round trips that count in no circuit: expiries of a late process, and calls of
// the limiter itself.

package shared

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/algorithms/shared/internal/circuit"
	"github.com/penstock-go/penstock/algorithms/shared/internal/trouble"
	"github.com/penstock-go/penstock/internal/redistest"
)

// The line of an outage has the number of excused expiries. An excused expiry
// neither opens a circuit nor keeps it closed.
func TestCircuitReportsExcusedExpiries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil)
		c := w.shared.circuit
		for range 100 {
			end, err := c.Begin()
			if err != nil {
				t.Fatal(err)
			}
			if c.Excuses(0, 20_000) {
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
		circuit := r.lane("").Circuit.(*circuit.Circuit)
		if circuit.Stops(false) {
			t.Fatal("the limiter's own calls have opened the circuit")
		}
		redistest.Until(t, "users' calls open the circuit", func() bool {
			_ = ask(false)
			return circuit.Stops(false)
		})
		sent := len(client.Trips())
		if err := ask(true); !errors.Is(err, trouble.ErrOpen) || len(client.Trips()) != sent {
			t.Errorf("got %v, and %d more trips; want trouble.ErrOpen", err, len(client.Trips())-sent)
		}
		tried := false
		redistest.Until(t, "the circuit may be tried", func() bool {
			circuit.Try(func() error { tried = true; return ask(true) })
			return tried
		})
		if len(client.Trips()) != sent+1 || !circuit.Stops(false) {
			t.Errorf("got %d trips of an attempt that fails, open %v; want one, and open", len(client.Trips())-sent, circuit.Stops(false))
		}
	})
}
