// Failure modes, applied to each part of a call.

package shared

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/algorithms/internal/step"
)

// verdicts returns the answers to the checks of a call without the primary:
// allowed (+) or denied (-), local (l) or undecided (u), and charged (c) or not.
func verdicts(w *world, checks []algorithms.Check) (s string) {
	for i := range checks {
		c := &checks[i]
		sign, source, charge := "-", "?", ""
		if c.Decision.Allowed {
			sign = "+"
		}
		switch c.Decision.Source {
		case algorithms.Undecided:
			source = "u"
		case algorithms.Local:
			source = "l"
		}
		if in := used(w.t, w.memory, c.Key, c.Limit); in > 0 || c.Decision.Receipt.Units() > 0 {
			charge = "c"
			if in == 0 || c.Decision.Receipt.Units() == 0 {
				charge = "?"
			}
		}
		s += " " + sign + source + charge
	}
	return s[1:]
}

// A modeTest is a call without the primary, its verdicts, and its error.
type modeTest struct {
	checks []algorithms.Check
	want   string
	err    error
}

type modeChecks = []algorithms.Check

func fivePerHour(key string, fail algorithms.FailureMode, cost int64, op algorithms.Op) algorithms.Check {
	return algorithms.Check{Policy: "default", Key: key, Limit: algorithms.FixedWindow(5, time.Hour), Cost: cost, Op: op, Fail: fail}
}

func localTake(key string, cost int64) algorithms.Check {
	return fivePerHour(key, algorithms.FailLocal, cost, algorithms.Take)
}

func openTake(key string, cost int64) algorithms.Check {
	return fivePerHour(key, algorithms.FailOpen, cost, algorithms.Take)
}

func closedTake(key string, cost int64) algorithms.Check {
	return fivePerHour(key, algorithms.FailClosed, cost, algorithms.Take)
}

func localTrial(key string, cost int64) algorithms.Check {
	return fivePerHour(key, algorithms.FailLocal, cost, algorithms.Trial)
}

func localInstead(key string, cost int64) algorithms.Check {
	return fivePerHour(key, algorithms.FailLocal, cost, algorithms.TrialInstead)
}

func TestFallbackModesOfTakes(t *testing.T) {
	testModes(t, map[string]modeTest{
		"local":                                 {modeChecks{localTake("a", 1)}, "+lc", nil},
		"local, above the limit":                {modeChecks{localTake("a", 6)}, "-l", nil},
		"open":                                  {modeChecks{openTake("a", 1)}, "+u", nil},
		"open, above the limit":                 {modeChecks{openTake("a", 6)}, "+u", nil},
		"closed":                                {modeChecks{closedTake("a", 1)}, "", algorithms.ErrUnavailable},
		"nobody":                                {modeChecks{{Policy: "p", Key: "a", Limit: algorithms.Nobody()}}, "-l", nil},
		"nobody, open":                          {modeChecks{{Policy: "p", Key: "a", Limit: algorithms.Nobody(), Fail: algorithms.FailOpen}}, "+u", nil},
		"all of them allow":                     {modeChecks{localTake("a", 1), localTake("b", 2)}, "+lc +lc", nil},
		"one denies, and none is charged":       {modeChecks{localTake("a", 1), localTake("b", 6), localTake("c", 1)}, "+l -l +l", nil},
		"open is left out, the rest is charged": {modeChecks{openTake("a", 1), localTake("b", 1), openTake("c", 6)}, "+u +lc +u", nil},
		"open does not save the rest":           {modeChecks{openTake("a", 1), localTake("b", 6)}, "+u -l", nil},
		"one closed, and nothing is charged":    {modeChecks{localTake("a", 1), openTake("b", 1), closedTake("c", 1)}, "", algorithms.ErrUnavailable},
		"closed first":                          {modeChecks{closedTake("a", 0), localTake("b", 1)}, "", algorithms.ErrUnavailable},
	})
}

func TestFallbackModesOfTrials(t *testing.T) {
	testModes(t, map[string]modeTest{
		"a trial beside":                  {modeChecks{localTake("a", 1), localTrial("b", 1)}, "+lc +lc", nil},
		"a trial that denies":             {modeChecks{localTake("a", 1), localTrial("b", 6)}, "+lc -l", nil},
		"a trial beside a denial":         {modeChecks{localTake("a", 6), localTrial("b", 1)}, "-l +l", nil},
		"a trial beside open":             {modeChecks{openTake("a", 1), localTrial("b", 1)}, "+u +lc", nil},
		"a trial that is closed":          {modeChecks{localTake("a", 1), fivePerHour("b", algorithms.FailClosed, 1, algorithms.Trial)}, "+lc +u", nil},
		"a trial that is open":            {modeChecks{localTake("a", 1), fivePerHour("b", algorithms.FailOpen, 1, algorithms.Trial)}, "+lc +u", nil},
		"a trial of a closed one":         {modeChecks{closedTake("a", 1), localTrial("b", 1)}, "", algorithms.ErrUnavailable},
		"a candidate of a denial":         {modeChecks{localTake("a", 6), localInstead("b", 1)}, "-l +lc", nil},
		"a candidate of open":             {modeChecks{openTake("a", 1), localInstead("b", 1)}, "+u +u", nil},
		"a candidate after open":          {modeChecks{openTake("a", 1), localTake("b", 1), localInstead("c", 1)}, "+u +lc +lc", nil},
		"candidates of both":              {modeChecks{localTake("a", 1), localInstead("b", 1), openTake("c", 1), localInstead("d", 1)}, "+lc +lc +u +u", nil},
		"a candidate of open, one denies": {modeChecks{localTake("a", 6), openTake("b", 1), localInstead("c", 1)}, "-l +u +u", nil},
	})
}

// No failure mode applies to an invalid call.
func TestFallbackModesOfInvalidCalls(t *testing.T) {
	testModes(t, map[string]modeTest{
		"invalid beats local":        {modeChecks{localTake("a", 1), localTake("", 1)}, "", algorithms.ErrInvalid},
		"invalid beats open":         {modeChecks{openTake("a", -1)}, "", algorithms.ErrInvalid},
		"invalid beside open":        {modeChecks{openTake("a", 1), localTake("b", -1)}, "", algorithms.ErrInvalid},
		"invalid beats closed":       {modeChecks{closedTake("a", 1), openTake("", 1)}, "", algorithms.ErrInvalid},
		"no limit, open":             {modeChecks{{Policy: "p", Key: "a", Fail: algorithms.FailOpen}}, "", algorithms.ErrInvalid},
		"settlements and takes":      {modeChecks{openTake("a", 1), fivePerHour("b", algorithms.FailOpen, 1, algorithms.Force)}, "", algorithms.ErrInvalid},
		"a candidate of nothing":     {modeChecks{fivePerHour("a", algorithms.FailOpen, 1, algorithms.TrialInstead)}, "", algorithms.ErrInvalid},
		"a trial on a take's key":    {modeChecks{localTake("a", 1), localTrial("a", 1)}, "", algorithms.ErrInvalid},
		"a trial on an open one's":   {modeChecks{openTake("a", 1), localTrial("a", 1)}, "", algorithms.ErrInvalid},
		"a trial on a closed one's":  {modeChecks{closedTake("a", 1), localTrial("a", 1)}, "", algorithms.ErrInvalid},
		"more than a call can hold":  {make([]algorithms.Check, step.MaxChecks+1), "", algorithms.ErrInvalid},
		"an op that there is not":    {modeChecks{fivePerHour("a", algorithms.FailOpen, 1, 99)}, "", algorithms.ErrInvalid},
		"settlements, one of them a": {modeChecks{fivePerHour("a", algorithms.FailLocal, 1, algorithms.Force), openTake("b", 1)}, "", algorithms.ErrInvalid},
	})
}

// testModes makes each call in a world without the primary.
func testModes(t *testing.T, tests map[string]modeTest) {
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, nil)
				w.trip()
				err := w.Allow(context.Background(), tt.checks)
				if !errors.Is(err, tt.err) || (err != nil) != (tt.err != nil) {
					t.Fatalf("got error %v, want %v", err, tt.err)
				}
				if errors.Is(err, algorithms.ErrInvalid) && errors.Is(err, algorithms.ErrUnavailable) {
					t.Errorf("got %v, want one or the other", err)
				}
				if err == nil {
					if got := verdicts(w, tt.checks); got != tt.want {
						t.Errorf("got %q, want %q", got, tt.want)
					}
				}
				for _, c := range tt.checks {
					if err != nil && c.Key != "" && c.Limit.Validate() == nil && used(t, w.memory, c.Key, c.Limit) > 0 {
						t.Errorf("%s was charged by a call that failed", c.Key)
					}
				}
			})
		})
	}
}

// A broken limiter decides nothing.
type broken struct{ err error }

func (b broken) Allow(context.Context, []algorithms.Check) error { return b.err }

func TestFallbackToABrokenMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t, shared: newFakePrimary(), memory: broken{errors.New("out of order")}}
		w.start(w.shared, nil)
		w.shared.fails(errLost)
		checks := []algorithms.Check{
			{Policy: "p", Key: "a", Limit: hourly, Cost: 1},
			{Policy: "p", Key: "b", Limit: hourly, Cost: 1, Fail: algorithms.FailOpen},
		}
		if err := w.Allow(context.Background(), checks); err != nil {
			t.Fatal(err)
		}
		for _, c := range checks {
			if c.Decision != (algorithms.Decision{Allowed: true}) {
				t.Errorf("%s: got %+v, want it allowed, Undecided", c.Key, c.Decision)
			}
		}
		if got := w.stats(); got.Passed != 2 || got.Local != 0 || got.Owed != 0 {
			t.Errorf("got %+v, want two passed", got)
		}
		checks[0].Fail = algorithms.FailClosed
		if err := w.Allow(context.Background(), checks); !errors.Is(err, algorithms.ErrUnavailable) || !errors.Is(err, errLost) {
			t.Errorf("closed: got %v, want ErrUnavailable and its cause", err)
		}
		if got := w.stats().Refused; got != 1 {
			t.Errorf("got %d refused, want 1", got)
		}
	})
}

// A caller that hung up gets the context's error, whatever the mode.
func TestFallbackOfCallersThatHungUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil)
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		for range 2 {
			for _, mode := range []algorithms.FailureMode{algorithms.FailLocal, algorithms.FailOpen, algorithms.FailClosed} {
				for _, op := range []algorithms.Op{algorithms.Take, algorithms.Force} {
					checks := []algorithms.Check{{Policy: "p", Key: "a", Limit: hourly, Cost: 1, Op: op, Fail: mode}}
					if err := w.Allow(ctx, checks); err != context.Canceled {
						t.Errorf("%v %v: got %v, want the context's error", mode, op, err)
					}
				}
			}
			if err := w.Allow(ctx, nil); err != context.Canceled {
				t.Errorf("no checks: got %v, want the context's error", err)
			}
			w.trip() // and once more while it is open
		}
		if n := used(t, w.memory, "a", hourly); n != 0 {
			t.Errorf("%d units were charged for a caller that hung up", n)
		}
	})
}

// While the primary answers, its answers stand, whatever the mode.
func TestFallbackIsThePrimary(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil)
		for i, mode := range []algorithms.FailureMode{algorithms.FailLocal, algorithms.FailOpen, algorithms.FailClosed, algorithms.FailLocal} {
			checks := []algorithms.Check{{Policy: "p", Key: "a", Limit: algorithms.FixedWindow(3, time.Hour), Cost: 1, Fail: mode}}
			if err := w.Allow(context.Background(), checks); err != nil {
				t.Fatal(err)
			}
			if d := checks[0].Decision; d.Source != algorithms.Shared || d.Allowed != (i < 3) {
				t.Errorf("call %d: got %+v, want the primary's verdict", i, d)
			}
		}
		if got := w.stats(); got != (fallbackStats{Instances: 1}) {
			t.Errorf("got %+v, want no counts", got)
		}
	})
}

// Concurrent calls, settlements, failures and recoveries: for the race detector.
func TestFallbackConcurrently(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, &Options{Instances: 3})
		for g := range 8 {
			go func() {
				for i := range 300 {
					c := algorithms.Check{Policy: "p", Key: fmt.Sprint("usr=", i%7), Limit: everyAlgorithm(50, time.Second)[(i+g)%5], Cost: 1, Fail: algorithms.FailureMode(i % 2)}
					if err := w.Allow(context.Background(), []algorithms.Check{c}); err != nil {
						t.Error(err)
					}
					c.Op = []algorithms.Op{algorithms.Return, algorithms.Force}[i%2]
					_ = w.Allow(context.Background(), []algorithms.Check{c})
					_ = w.stats()
					time.Sleep(10 * time.Millisecond)
				}
			}()
		}
		for i := range 30 {
			time.Sleep(200 * time.Millisecond)
			switch i % 6 {
			case 0:
				w.shared.fails(errRefused)
			case 2:
				w.shared.hangs()
			case 3:
				w.shared.fails(nil)
			}
		}
		w.shared.fails(nil)
		time.Sleep(10 * time.Second)
		if got := w.stats(); got.Open > 0 || got.Trips == 0 || got.Owed != 0 || got.HandedBack == 0 {
			t.Errorf("got %+v, want it closed again, and nothing owed", got)
		}
	})
}
