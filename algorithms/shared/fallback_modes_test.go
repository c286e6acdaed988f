// What each failure mode does with each part of a call.

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

// verdicts returns what the checks of a call without the primary get, in order: allowed (+) or
// denied (-), by the local limiter (l) or undecided (u), and charged (c) or not.
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

func TestFallbackModes(t *testing.T) {
	five := algorithms.FixedWindow(5, time.Hour)
	check := func(key string, fail algorithms.FailureMode, cost int64, op algorithms.Op) algorithms.Check {
		return algorithms.Check{Policy: "default", Key: key, Limit: five, Cost: cost, Op: op, Fail: fail}
	}
	local := func(key string, cost int64) algorithms.Check {
		return check(key, algorithms.FailLocal, cost, algorithms.Take)
	}
	open := func(key string, cost int64) algorithms.Check {
		return check(key, algorithms.FailOpen, cost, algorithms.Take)
	}
	closed := func(key string, cost int64) algorithms.Check {
		return check(key, algorithms.FailClosed, cost, algorithms.Take)
	}
	trial := func(key string, cost int64) algorithms.Check {
		return check(key, algorithms.FailLocal, cost, algorithms.Trial)
	}
	instead := func(key string, cost int64) algorithms.Check {
		return check(key, algorithms.FailLocal, cost, algorithms.TrialInstead)
	}
	tests := map[string]struct {
		checks []algorithms.Check
		want   string
		err    error
	}{
		"local":                                 {[]algorithms.Check{local("a", 1)}, "+lc", nil},
		"local, above the limit":                {[]algorithms.Check{local("a", 6)}, "-l", nil},
		"open":                                  {[]algorithms.Check{open("a", 1)}, "+u", nil},
		"open, above the limit":                 {[]algorithms.Check{open("a", 6)}, "+u", nil},
		"closed":                                {[]algorithms.Check{closed("a", 1)}, "", algorithms.ErrUnavailable},
		"nobody":                                {[]algorithms.Check{{Policy: "p", Key: "a", Limit: algorithms.Nobody()}}, "-l", nil},
		"nobody, open":                          {[]algorithms.Check{{Policy: "p", Key: "a", Limit: algorithms.Nobody(), Fail: algorithms.FailOpen}}, "+u", nil},
		"all of them allow":                     {[]algorithms.Check{local("a", 1), local("b", 2)}, "+lc +lc", nil},
		"one denies, and none is charged":       {[]algorithms.Check{local("a", 1), local("b", 6), local("c", 1)}, "+l -l +l", nil},
		"open is left out, the rest is charged": {[]algorithms.Check{open("a", 1), local("b", 1), open("c", 6)}, "+u +lc +u", nil},
		"open does not save the rest":           {[]algorithms.Check{open("a", 1), local("b", 6)}, "+u -l", nil},
		"one closed, and nothing is charged":    {[]algorithms.Check{local("a", 1), open("b", 1), closed("c", 1)}, "", algorithms.ErrUnavailable},
		"closed first":                          {[]algorithms.Check{closed("a", 0), local("b", 1)}, "", algorithms.ErrUnavailable},

		"a trial beside":                  {[]algorithms.Check{local("a", 1), trial("b", 1)}, "+lc +lc", nil},
		"a trial that denies":             {[]algorithms.Check{local("a", 1), trial("b", 6)}, "+lc -l", nil},
		"a trial beside a denial":         {[]algorithms.Check{local("a", 6), trial("b", 1)}, "-l +l", nil},
		"a trial beside open":             {[]algorithms.Check{open("a", 1), trial("b", 1)}, "+u +lc", nil},
		"a trial that is closed":          {[]algorithms.Check{local("a", 1), check("b", algorithms.FailClosed, 1, algorithms.Trial)}, "+lc +u", nil},
		"a trial that is open":            {[]algorithms.Check{local("a", 1), check("b", algorithms.FailOpen, 1, algorithms.Trial)}, "+lc +u", nil},
		"a trial of a closed one":         {[]algorithms.Check{closed("a", 1), trial("b", 1)}, "", algorithms.ErrUnavailable},
		"a candidate of a denial":         {[]algorithms.Check{local("a", 6), instead("b", 1)}, "-l +lc", nil},
		"a candidate of open":             {[]algorithms.Check{open("a", 1), instead("b", 1)}, "+u +u", nil},
		"a candidate after open":          {[]algorithms.Check{open("a", 1), local("b", 1), instead("c", 1)}, "+u +lc +lc", nil},
		"candidates of both":              {[]algorithms.Check{local("a", 1), instead("b", 1), open("c", 1), instead("d", 1)}, "+lc +lc +u +u", nil},
		"a candidate of open, one denies": {[]algorithms.Check{local("a", 6), open("b", 1), instead("c", 1)}, "-l +u +u", nil},

		"invalid beats local":        {[]algorithms.Check{local("a", 1), local("", 1)}, "", algorithms.ErrInvalid},
		"invalid beats open":         {[]algorithms.Check{open("a", -1)}, "", algorithms.ErrInvalid},
		"invalid beside open":        {[]algorithms.Check{open("a", 1), local("b", -1)}, "", algorithms.ErrInvalid},
		"invalid beats closed":       {[]algorithms.Check{closed("a", 1), open("", 1)}, "", algorithms.ErrInvalid},
		"no limit, open":             {[]algorithms.Check{{Policy: "p", Key: "a", Fail: algorithms.FailOpen}}, "", algorithms.ErrInvalid},
		"settlements and takes":      {[]algorithms.Check{open("a", 1), check("b", algorithms.FailOpen, 1, algorithms.Force)}, "", algorithms.ErrInvalid},
		"a candidate of nothing":     {[]algorithms.Check{check("a", algorithms.FailOpen, 1, algorithms.TrialInstead)}, "", algorithms.ErrInvalid},
		"a trial on a take's key":    {[]algorithms.Check{local("a", 1), trial("a", 1)}, "", algorithms.ErrInvalid},
		"a trial on an open one's":   {[]algorithms.Check{open("a", 1), trial("a", 1)}, "", algorithms.ErrInvalid},
		"a trial on a closed one's":  {[]algorithms.Check{closed("a", 1), trial("a", 1)}, "", algorithms.ErrInvalid},
		"more than a call can hold":  {make([]algorithms.Check, step.MaxChecks+1), "", algorithms.ErrInvalid},
		"an op that there is not":    {[]algorithms.Check{check("a", algorithms.FailOpen, 1, 99)}, "", algorithms.ErrInvalid},
		"settlements, one of them a": {[]algorithms.Check{check("a", algorithms.FailLocal, 1, algorithms.Force), open("b", 1)}, "", algorithms.ErrInvalid},
	}
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
		w := newWorld(t, &Options{OpenFor: time.Second, Instances: 3})
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
		if got := w.stats(); got.Open || got.Trips == 0 || got.Owed != 0 || got.HandedBack == 0 {
			t.Errorf("got %+v, want it closed again, and nothing owed", got)
		}
	})
}
