package algorithms

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

// What checks of a call without the primary get, in order: allowed (+) or
// denied (-), by the local limiter (l) or undecided (u), and charged (c) or not.
func verdicts(w *world, checks []Check) (s string) {
	for i := range checks {
		c := &checks[i]
		sign, source, charge := "-", "?", ""
		if c.Decision.Allowed {
			sign = "+"
		}
		switch c.Decision.Source {
		case Undecided:
			source = "u"
		case Local:
			source = "l"
		}
		if in := used(w.t, w.secondary, c.Key, c.Limit); in > 0 || c.Decision.Receipt.units > 0 {
			charge = "c"
			if in == 0 || c.Decision.Receipt.units == 0 {
				charge = "?"
			}
		}
		s += " " + sign + source + charge
	}
	return s[1:]
}

func TestFallbackModes(t *testing.T) {
	five := FixedWindow(5, time.Hour)
	check := func(key string, fail FailureMode, cost int64, op Op) Check {
		return Check{Policy: DefaultPolicy, Key: key, Limit: five, Cost: cost, Op: op, Fail: fail}
	}
	local := func(key string, cost int64) Check { return check(key, FailLocal, cost, Take) }
	open := func(key string, cost int64) Check { return check(key, FailOpen, cost, Take) }
	closed := func(key string, cost int64) Check { return check(key, FailClosed, cost, Take) }
	trial := func(key string, cost int64) Check { return check(key, FailLocal, cost, Trial) }
	instead := func(key string, cost int64) Check { return check(key, FailLocal, cost, TrialInstead) }
	tests := map[string]struct {
		checks []Check
		want   string
		err    error
	}{
		"local":                                 {[]Check{local("a", 1)}, "+lc", nil},
		"local, above the limit":                {[]Check{local("a", 6)}, "-l", nil},
		"open":                                  {[]Check{open("a", 1)}, "+u", nil},
		"open, above the limit":                 {[]Check{open("a", 6)}, "+u", nil},
		"closed":                                {[]Check{closed("a", 1)}, "", ErrUnavailable},
		"nobody":                                {[]Check{{Policy: "p", Key: "a", Limit: Nobody()}}, "-l", nil},
		"nobody, open":                          {[]Check{{Policy: "p", Key: "a", Limit: Nobody(), Fail: FailOpen}}, "+u", nil},
		"all of them allow":                     {[]Check{local("a", 1), local("b", 2)}, "+lc +lc", nil},
		"one denies, and none is charged":       {[]Check{local("a", 1), local("b", 6), local("c", 1)}, "+l -l +l", nil},
		"open is left out, the rest is charged": {[]Check{open("a", 1), local("b", 1), open("c", 6)}, "+u +lc +u", nil},
		"open does not save the rest":           {[]Check{open("a", 1), local("b", 6)}, "+u -l", nil},
		"one closed, and nothing is charged":    {[]Check{local("a", 1), open("b", 1), closed("c", 1)}, "", ErrUnavailable},
		"closed first":                          {[]Check{closed("a", 0), local("b", 1)}, "", ErrUnavailable},

		"a trial beside":                  {[]Check{local("a", 1), trial("b", 1)}, "+lc +lc", nil},
		"a trial that denies":             {[]Check{local("a", 1), trial("b", 6)}, "+lc -l", nil},
		"a trial beside a denial":         {[]Check{local("a", 6), trial("b", 1)}, "-l +l", nil},
		"a trial beside open":             {[]Check{open("a", 1), trial("b", 1)}, "+u +lc", nil},
		"a trial that is closed":          {[]Check{local("a", 1), check("b", FailClosed, 1, Trial)}, "+lc +u", nil},
		"a trial that is open":            {[]Check{local("a", 1), check("b", FailOpen, 1, Trial)}, "+lc +u", nil},
		"a trial of a closed one":         {[]Check{closed("a", 1), trial("b", 1)}, "", ErrUnavailable},
		"a candidate of a denial":         {[]Check{local("a", 6), instead("b", 1)}, "-l +lc", nil},
		"a candidate of open":             {[]Check{open("a", 1), instead("b", 1)}, "+u +u", nil},
		"a candidate after open":          {[]Check{open("a", 1), local("b", 1), instead("c", 1)}, "+u +lc +lc", nil},
		"candidates of both":              {[]Check{local("a", 1), instead("b", 1), open("c", 1), instead("d", 1)}, "+lc +lc +u +u", nil},
		"a candidate of open, one denies": {[]Check{local("a", 6), open("b", 1), instead("c", 1)}, "-l +u +u", nil},

		"invalid beats local":        {[]Check{local("a", 1), local("", 1)}, "", ErrInvalid},
		"invalid beats open":         {[]Check{open("a", -1)}, "", ErrInvalid},
		"invalid beside open":        {[]Check{open("a", 1), local("b", -1)}, "", ErrInvalid},
		"invalid beats closed":       {[]Check{closed("a", 1), open("", 1)}, "", ErrInvalid},
		"no limit, open":             {[]Check{{Policy: "p", Key: "a", Fail: FailOpen}}, "", ErrInvalid},
		"settlements and takes":      {[]Check{open("a", 1), check("b", FailOpen, 1, Force)}, "", ErrInvalid},
		"a candidate of nothing":     {[]Check{check("a", FailOpen, 1, TrialInstead)}, "", ErrInvalid},
		"a trial on a take's key":    {[]Check{local("a", 1), trial("a", 1)}, "", ErrInvalid},
		"a trial on an open one's":   {[]Check{open("a", 1), trial("a", 1)}, "", ErrInvalid},
		"a trial on a closed one's":  {[]Check{closed("a", 1), trial("a", 1)}, "", ErrInvalid},
		"more than a call can hold":  {make([]Check, maxChecks+1), "", ErrInvalid},
		"an op that there is not":    {[]Check{check("a", FailOpen, 1, 99)}, "", ErrInvalid},
		"settlements, one of them a": {[]Check{check("a", FailLocal, 1, Force), open("b", 1)}, "", ErrInvalid},
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
				if errors.Is(err, ErrInvalid) && errors.Is(err, ErrUnavailable) {
					t.Errorf("got %v, want one or the other", err)
				}
				if err == nil {
					if got := verdicts(w, tt.checks); got != tt.want {
						t.Errorf("got %q, want %q", got, tt.want)
					}
				}
				for _, c := range tt.checks {
					if err != nil && c.Key != "" && c.Limit.valid && used(t, w.secondary, c.Key, c.Limit) > 0 {
						t.Errorf("%s was charged by a call that failed", c.Key)
					}
				}
			})
		})
	}
}

// A broken limiter decides nothing.
type broken struct{ err error }

func (b broken) Allow(context.Context, []Check) error { return b.err }

func TestFallbackOfNoHelp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &sharedMemory{memory: newClosedMemory(t)}
		p.fails(errLost)
		f, err := NewFallback(p, broken{errors.New("out of order")}, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		checks := []Check{
			{Policy: "p", Key: "a", Limit: hourly, Cost: 1},
			{Policy: "p", Key: "b", Limit: hourly, Cost: 1, Fail: FailOpen},
		}
		if err := f.Allow(context.Background(), checks); err != nil {
			t.Fatal(err)
		}
		for _, c := range checks {
			if c.Decision != (Decision{Allowed: true}) {
				t.Errorf("%s: got %+v, want it allowed, Undecided", c.Key, c.Decision)
			}
		}
		if got := f.Stats(); got.Passed != 2 || got.Local != 0 || got.Owed != 0 {
			t.Errorf("got %+v, want two passed", got)
		}
		checks[0].Fail = FailClosed
		if err := f.Allow(context.Background(), checks); !errors.Is(err, ErrUnavailable) || !errors.Is(err, errLost) {
			t.Errorf("closed: got %v, want ErrUnavailable and its cause", err)
		}
		if got := f.Stats().Refused; got != 1 {
			t.Errorf("got %d refused, want 1", got)
		}
	})
}

// Whoever hung up gets the context's error, whatever the mode.
func TestFallbackOfSomebodyGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil)
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		for range 2 {
			for _, mode := range []FailureMode{FailLocal, FailOpen, FailClosed} {
				for _, op := range []Op{Take, Force} {
					checks := []Check{{Policy: "p", Key: "a", Limit: hourly, Cost: 1, Op: op, Fail: mode}}
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
		if n := used(t, w.secondary, "a", hourly); n != 0 {
			t.Errorf("%d units were charged for somebody gone", n)
		}
	})
}

// While the primary answers, its answers stand, whatever the mode.
func TestFallbackIsThePrimary(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil)
		for i, mode := range []FailureMode{FailLocal, FailOpen, FailClosed, FailLocal} {
			checks := []Check{{Policy: "p", Key: "a", Limit: FixedWindow(3, time.Hour), Cost: 1, Fail: mode}}
			if err := w.Allow(context.Background(), checks); err != nil {
				t.Fatal(err)
			}
			if d := checks[0].Decision; d.Source != Shared || d.Allowed != (i < 3) {
				t.Errorf("call %d: got %+v, want the primary's verdict", i, d)
			}
		}
		if got := w.Stats(); got != (FallbackStats{Instances: 1}) {
			t.Errorf("got %+v, want nothing to tell", got)
		}
	})
}

// Concurrent calls, settlements, failures and recoveries: for the race detector.
func TestFallbackConcurrently(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, &FallbackOptions{OpenFor: time.Second, Instances: 3})
		for g := range 8 {
			go func() {
				for i := range 300 {
					c := Check{Policy: "p", Key: fmt.Sprint("usr=", i%7), Limit: everyAlgorithm(50, time.Second)[(i+g)%5], Cost: 1, Fail: FailureMode(i % 2)}
					if err := w.Allow(context.Background(), []Check{c}); err != nil {
						t.Error(err)
					}
					c.Op = []Op{Return, Force}[i%2]
					_ = w.Allow(context.Background(), []Check{c})
					_ = w.Stats()
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
		if got := w.Stats(); got.Open || got.Trips == 0 || got.Owed != 0 || got.HandedBack == 0 {
			t.Errorf("got %+v, want it closed again, and nothing owed", got)
		}
	})
}
