// When the circuit opens, which outcomes it ignores, and how it closes.

package shared

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/penstock-go/penstock/algorithms/shared/internal/trouble"
)

// An outcome is how a round trip ends, and when: after so many ms.
type outcome struct {
	at  int64
	err error
}

func failures(at ...int64) (trips []outcome) {
	for _, ms := range at {
		trips = append(trips, outcome{ms, errRefused})
	}
	return trips
}

// mixed returns n round trips, one every gap ms. Every second one fails; the
// last one does.
func mixed(n int, gap int64) (trips []outcome) {
	for i := range n {
		o := outcome{at: int64(i) * gap}
		if i%2 != n%2 {
			o.err = errRefused
		}
		trips = append(trips, o)
	}
	return trips
}

func with(trips []outcome, more ...outcome) []outcome { return append(trips, more...) }

// Deadlines are of 50 ms: trouble of 100 ms is no hiccup.
func TestCircuitOpens(t *testing.T) {
	tests := map[string]struct {
		trips []outcome
		want  int // the number of the trip that opens it; 0: none
	}{
		"five in a row, for two deadlines":       {failures(0, 25, 50, 75, 100), 5},
		"five in a row, hardly two deadlines":    {failures(0, 25, 50, 75, 99), 0},
		"the sixth, at two deadlines":            {failures(0, 25, 50, 75, 99, 100), 6},
		"a hundred at one instant":               {failures(make([]int64, 100)...), 0},
		"a hundred at one instant, and one more": {failures(append(make([]int64, 100), 100)...), 101},
		"five in ten seconds":                    {failures(0, 2_400, 4_800, 7_200, 8_900), 5},
		"four, a gap of eleven seconds, one":     {failures(0, 1, 2, 3, 11_003), 0},
		"four, a gap, and five":                  {failures(0, 100, 200, 300, 11_300, 11_320, 11_340, 11_360, 11_400), 9},
		"astride the end of the first period":    {failures(9_000, 9_300, 9_600, 9_900, 10_200), 5},
		"astride the end of a bucket":            {failures(1_940, 1_960, 1_980, 2_020, 2_040), 5},
		"one every three seconds":                {failures(0, 3_000, 6_000, 9_000, 12_000, 15_000, 18_000, 21_000), 0},
		"a success in between":                   {with(failures(0, 25, 50, 75), outcome{80, nil}, outcome{100, errRefused}, outcome{200, errRefused}), 0},
		"a key's error in between":               {with(failures(0, 25, 50, 75), outcome{80, errWrongType}, outcome{100, errRefused}), 0},
		"a caller hung up in between":            {with(failures(0, 25, 50, 75), outcome{80, context.Canceled}, outcome{100, errRefused}), 6},

		"half of twenty":                        {mixed(20, 10), 20},
		"half of twenty at one instant":         {mixed(20, 0), 0},
		"half of twenty, hardly two deadlines":  {mixed(20, 5), 0},
		"ten of nineteen":                       {mixed(19, 10), 0},
		"nine of twenty":                        {with(mixed(17, 10), outcome{180, nil}, outcome{190, nil}, outcome{200, nil}, outcome{210, errRefused}), 0},
		"half of nineteen in any ten seconds":   {mixed(200, 580), 0},
		"half of twenty-one in any ten seconds": {mixed(200, 470), 20},
		"half, of the trips that count":         {with(mixed(18, 10), outcome{190, context.Canceled}, outcome{200, context.Canceled}, outcome{210, errRefused}), 0},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, start := newCircuits(defaultDeadline).add(), time.Now()
				for i, trip := range tt.trips {
					time.Sleep(time.Until(start.Add(time.Duration(trip.at) * time.Millisecond)))
					end, err := c.begin()
					if err != nil {
						t.Fatalf("trip %d: %v", i+1, err)
					}
					end(trip.err)
					if c.open.Load() != (i+1 == tt.want) {
						t.Fatalf("after trip %d: open is %v, want trip %d to open it", i+1, c.open.Load(), tt.want)
					}
					if c.open.Load() {
						return
					}
				}
			})
		})
	}
}

// Round trips that began before the circuit opened do not count afterwards.
func TestCircuitIgnoresLateOutcomes(t *testing.T) {
	for _, late := range []error{nil, errRefused} {
		synctest.Test(t, func(t *testing.T) {
			c := newCircuits(defaultDeadline).add()
			var ends []func(error)
			for range 2 * tripAfter {
				end, err := c.begin()
				if err != nil {
					t.Fatal(err)
				}
				ends = append(ends, end)
			}
			later := ends[tripAfter:]
			for _, end := range ends[:tripAfter] {
				time.Sleep(defaultDeadline)
				end(errRefused)
			}
			if !c.open.Load() {
				t.Fatal("closed after five failures in a row")
			}
			later[0](late)
			if !c.open.Load() {
				t.Errorf("a late %v closed the circuit", late)
			}
			time.Sleep(firstPause)
			c.try(func() error {
				later[1](late)
				if !c.open.Load() {
					t.Errorf("a late %v closed the circuit that is being tried", late)
				}
				return nil
			})
			if c.open.Load() {
				t.Fatal("open after an attempt that succeeded")
			}
			for _, end := range later[2:] {
				time.Sleep(defaultDeadline)
				end(late)
			}
			if end, err := c.begin(); err != nil {
				t.Errorf("late outcomes (%v) opened the circuit again", late)
			} else {
				end(nil)
			}
		})
	}
}

func TestCircuitBeginsNothingWhileOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCircuits(defaultDeadline).add()
		for range tripAfter {
			end, _ := c.begin()
			time.Sleep(defaultDeadline)
			end(errLost)
		}
		if _, err := c.begin(); err != trouble.ErrOpen {
			t.Errorf("begin: got %v, want trouble.ErrOpen", err)
		}
		if err := *c.cause.Load(); err != error(errLost) {
			t.Errorf("cause: got %v, want %v", err, errLost)
		}
		c.try(func() error { t.Error("tried at once"); return nil })
		time.Sleep(firstPause)
		own := func(when string, stops bool) {
			t.Helper()
			if c.stops(true) != stops || !c.stops(false) {
				t.Errorf("%s: the limiter's own calls are stopped: %v, want %v; users' calls: %v, want true", when, c.stops(true), stops, c.stops(false))
			}
			if _, err := c.begin(); err != trouble.ErrOpen {
				t.Errorf("%s: got %v, want trouble.ErrOpen", when, err)
			}
		}
		own("before an attempt", true)
		c.try(func() error {
			own("in an attempt", false)
			return errRefused
		})
		own("after an attempt that failed", true)
	})
}

// An attempt that panics has failed, and blocks no other.
func TestCircuitOutlivesAPanic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCircuits(defaultDeadline).add()
		for range tripAfter {
			end, _ := c.begin()
			time.Sleep(defaultDeadline)
			end(errLost)
		}
		time.Sleep(2 * time.Second)
		func() {
			defer func() { _ = recover() }()
			c.try(func() error { panic("attempt") })
		}()
		if !c.open.Load() || c.trying.Load() {
			t.Fatalf("open %v, trying %v after a panic; want it open, and not trying", c.open.Load(), c.trying.Load())
		}
		time.Sleep(2 * time.Second)
		c.try(func() error { return nil })
		if c.open.Load() {
			t.Error("open after the next attempt, which succeeded")
		}
	})
}
