// When the circuit opens, which outcomes it ignores, and how it closes.

package circuit

import (
	"context"
	"errors"
	"net"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/penstock-go/penstock/algorithms/shared/internal/trouble"
)

const defaultDeadline = 50 * time.Millisecond

// The outcomes of round trips.
var (
	errRefused   = &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}         // not executed
	errLost      = &net.OpError{Op: "read", Net: "tcp", Err: os.ErrDeadlineExceeded}       // maybe executed
	errWrongType = errors.New("WRONGTYPE Operation against a key holding the wrong value") // the key's fault
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
				c, start := New(defaultDeadline).Add(), time.Now()
				for i, trip := range tt.trips {
					time.Sleep(time.Until(start.Add(time.Duration(trip.at) * time.Millisecond)))
					end, err := c.Begin()
					if err != nil {
						t.Fatalf("trip %d: %v", i+1, err)
					}
					end(trip.err)
					if c.Stops(false) != (i+1 == tt.want) {
						t.Fatalf("after trip %d: open is %v, want trip %d to open it", i+1, c.Stops(false), tt.want)
					}
					if c.Stops(false) {
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
			c := New(defaultDeadline).Add()
			var ends []func(error)
			for range 2 * TripAfter {
				end, err := c.Begin()
				if err != nil {
					t.Fatal(err)
				}
				ends = append(ends, end)
			}
			later := ends[TripAfter:]
			for _, end := range ends[:TripAfter] {
				time.Sleep(defaultDeadline)
				end(errRefused)
			}
			if !c.Stops(false) {
				t.Fatal("closed after five failures in a row")
			}
			later[0](late)
			if !c.Stops(false) {
				t.Errorf("a late %v closed the circuit", late)
			}
			time.Sleep(FirstPause)
			c.Try(func() error {
				later[1](late)
				if !c.Stops(false) {
					t.Errorf("a late %v closed the circuit that is being tried", late)
				}
				return nil
			})
			if c.Stops(false) {
				t.Fatal("open after an attempt that succeeded")
			}
			for _, end := range later[2:] {
				time.Sleep(defaultDeadline)
				end(late)
			}
			if end, err := c.Begin(); err != nil {
				t.Errorf("late outcomes (%v) opened the circuit again", late)
			} else {
				end(nil)
			}
		})
	}
}

func TestCircuitBeginsNothingWhileOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := New(defaultDeadline).Add()
		for range TripAfter {
			end, _ := c.Begin()
			time.Sleep(defaultDeadline)
			end(errLost)
		}
		if _, err := c.Begin(); err != trouble.ErrOpen {
			t.Errorf("begin: got %v, want trouble.ErrOpen", err)
		}
		if err := c.Cause(); err != error(errLost) {
			t.Errorf("cause: got %v, want %v", err, errLost)
		}
		c.Try(func() error { t.Error("tried at once"); return nil })
		time.Sleep(FirstPause)
		own := func(when string, stops bool) {
			t.Helper()
			if c.Stops(true) != stops || !c.Stops(false) {
				t.Errorf("%s: the limiter's own calls are stopped: %v, want %v; users' calls: %v, want true", when, c.Stops(true), stops, c.Stops(false))
			}
			if _, err := c.Begin(); err != trouble.ErrOpen {
				t.Errorf("%s: got %v, want trouble.ErrOpen", when, err)
			}
		}
		own("before an attempt", true)
		c.Try(func() error {
			own("in an attempt", false)
			return errRefused
		})
		own("after an attempt that failed", true)
	})
}

// An attempt that panics has failed, and blocks no other.
func TestCircuitOutlivesAPanic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := New(defaultDeadline).Add()
		for range TripAfter {
			end, _ := c.Begin()
			time.Sleep(defaultDeadline)
			end(errLost)
		}
		time.Sleep(2 * time.Second)
		func() {
			defer func() { _ = recover() }()
			c.Try(func() error { panic("attempt") })
		}()
		if !c.Stops(false) || c.trying.Load() {
			t.Fatalf("open %v, trying %v after a panic; want it open, and not trying", c.Stops(false), c.trying.Load())
		}
		time.Sleep(2 * time.Second)
		c.Try(func() error { return nil })
		if c.Stops(false) {
			t.Error("open after the next attempt, which succeeded")
		}
	})
}

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
		cs := New(defaultDeadline)
		c, other, excused := cs.Add(), cs.Add(), int64(0)
		for i, e := range expiries {
			now := 1_000 + e.at*1_000
			if got := c.Excuses(now-e.late*1_000, now); got != e.want {
				t.Errorf("%s: expiry %d, at %d ms and %d ms late: excused is %v, want %v", name, i, e.at, e.late, got, e.want)
			}
			if e.want {
				excused++
			}
		}
		if got := c.TakeExcused(); got != excused || c.TakeExcused() != 0 || other.excused.Swap(0) != 0 {
			t.Errorf("%s: got %d excused expiries, want %d, once", name, got, excused)
		}
	}
	if c := New(defaultDeadline).Add(); c.Excuses(0, punctual) || !c.Excuses(0, punctual+1) {
		t.Error("an expiry is late from one µs after 10 ms")
	}
}
