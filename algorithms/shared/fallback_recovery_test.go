// Opening, probing and closing, seen from the calls.

package shared

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/algorithms/shared/internal/circuit"
)

// hourly is a limit that these tests never spend.
var hourly = algorithms.FixedWindow(1_000, time.Hour)

func TestFallbackRecovers(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		backAfter  time.Duration // the opening, by the latest probe
		closedFrom time.Duration // since the opening
		closedTill time.Duration
	}{
		"before the first probe": {200 * time.Millisecond, 225 * time.Millisecond, 260 * time.Millisecond},
		"before the second":      {300 * time.Millisecond, 675 * time.Millisecond, 760 * time.Millisecond},
		"before the third":       {800 * time.Millisecond, 1575 * time.Millisecond, 1760 * time.Millisecond},
		"an hour later":          {time.Hour, time.Hour, time.Hour + 1010*time.Millisecond},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, nil)
				w.trip()
				opened := time.Now()
				users, _ := w.shared.asked()
				time.AfterFunc(tt.backAfter, func() { w.shared.fails(nil) })
				for w.stats().Open > 0 {
					// An hour of steps of 10 ms takes long. So steps are a hundredth of what is left.
					time.Sleep(max(10*time.Millisecond, time.Until(opened.Add(tt.backAfter))/100))
					if got, _ := w.shared.asked(); got != users {
						t.Fatal("a user's call reached the primary while the circuit was open")
					}
					if d := w.take("usr=1", hourly, 0); w.stats().Open > 0 && d.Source != algorithms.Local {
						t.Fatalf("got %v, want a local decision while the circuit is open", d.Source)
					}
				}
				if took := time.Since(opened); took < tt.closedFrom || took > tt.closedTill {
					t.Errorf("closed after %v, want %v to %v", took, tt.closedFrom, tt.closedTill)
				}
				if d := w.take("usr=1", hourly, 1); d.Source != algorithms.Shared {
					t.Errorf("got %v, want a shared decision", d.Source)
				}
				synctest.Wait()
				if got := w.log.messages(); !slices.Equal(got, []string{logUnavailable, logAvailable}) {
					t.Errorf("got the log %q, want opened, closed", got)
				}
				// The call that opened the circuit is decided at the same time.
				want := w.stats().Local - circuit.TripAfter
				if got, ok := w.log.attr(logAvailable, "decided_locally").(uint64); !ok || got < want || got > want+1 {
					t.Errorf("logged %v decided locally, want the %d since the circuit opened", got, want)
				}
				if got := w.stats().Trips; got != 1 {
					t.Errorf("got %d trips, want 1", got)
				}
			})
		})
	}
}

// Probes come after pauses of 0.25 s, 0.5 s, and then a second, each up to a tenth
// shorter. So instances do not probe together.
func TestFallbackProbesEverySecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var fifth []time.Duration
		for range 30 {
			w := newWorld(t, nil)
			w.trip()
			last := time.Now()
			time.Sleep(5 * time.Second)
			at := w.shared.probedAt()
			if len(at) < 5 {
				t.Fatalf("got %d probes in 5 s, want 5", len(at))
			}
			fifth = append(fifth, at[4].Sub(last))
			for i, pause := range []time.Duration{circuit.FirstPause, 2 * circuit.FirstPause, time.Second, time.Second, time.Second} {
				if got := at[i].Sub(last); got > pause || got < pause-pause/10 {
					t.Errorf("probe %d: got a pause of %v, want %v, less up to a tenth", i+1, got, pause)
				}
				last = at[i]
			}
			_ = w.Close()
		}
		slices.Sort(fifth)
		if spread := fifth[len(fifth)-1] - fifth[0]; spread < 50*time.Millisecond {
			t.Errorf("the fifth probes of 30 instances came within %v, want them spread", spread)
		}
	})
}

// A circuit that opens again at once begins with the shortest pause each time. No
// pause is longer than a second.
func TestFallbackPausesStayShort(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil)
		for i := range 20 {
			w.trip()
			opened := time.Now()
			w.shared.fails(nil)
			for w.stats().Open > 0 {
				time.Sleep(time.Millisecond)
			}
			if got := time.Since(opened); got > circuit.FirstPause+2*time.Millisecond || got < circuit.FirstPause-circuit.FirstPause/10 {
				t.Errorf("opening %d: closed after %v, want %v, less up to a tenth", i+1, got, circuit.FirstPause)
			}
		}
		if got := w.stats().Trips; got != 20 {
			t.Errorf("got %d trips, want 20", got)
		}
	})
	for n := range 100 {
		longest := []time.Duration{circuit.FirstPause, 2 * circuit.FirstPause, circuit.SteadyPause}[min(n, 2)]
		for range 100 {
			if got := circuit.Pause(n); got > longest || got <= longest-longest/10 {
				t.Fatalf("got a pause of %v before probe %d, want %v, less up to a tenth", got, n+1, longest)
			}
		}
	}
}

// A probe without an answer ends by its deadline, and no user's call takes its
// place.
func TestFallbackProbeHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil)
		w.trip()
		users, _ := w.shared.asked()
		w.shared.hangs()
		for _, probes := w.shared.asked(); probes == 0; _, probes = w.shared.asked() {
			time.Sleep(10 * time.Millisecond)
		}
		var callers sync.WaitGroup
		for i := range 100 {
			callers.Go(func() {
				start := time.Now()
				if d := w.take(fmt.Sprint("usr=", i), hourly, 1); d.Source != algorithms.Local || time.Since(start) > 0 {
					t.Errorf("while a probe is under way: got %v after %v, want a local decision at once", d.Source, time.Since(start))
				}
			})
		}
		callers.Wait()
		if got, _ := w.shared.asked(); got != users {
			t.Errorf("%d users' calls reached the primary while a probe was under way", got-users)
		}
		time.Sleep(3 * time.Second)
		if _, probes := w.shared.asked(); probes < 3 {
			t.Errorf("got %d probes in three seconds, want the deadline to end each", probes)
		}
		w.shared.fails(nil)
		time.Sleep(recoversWithin)
		if w.stats().Open > 0 {
			t.Error("open 2 s after the primary was back")
		}
	})
}

// Every call ends by the deadline, and at once while the circuit is open.
func TestFallbackDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, &Options{Deadline: 20 * time.Millisecond})
		w.shared.hangs()
		for i := range 10 {
			want := 20 * time.Millisecond
			if i >= circuit.TripAfter {
				want = 0
			}
			start := time.Now()
			if d := w.take("usr=1", hourly, 1); d.Source != algorithms.Local || !d.Allowed {
				t.Errorf("call %d: got %+v, want the memory's answer", i, d)
			}
			if took := time.Since(start); took != want {
				t.Errorf("call %d took %v, want %v", i, took, want)
			}
		}
	})
}

// blamelessFaults are calls that fail because of a caller or of one key.
var blamelessFaults = map[string]func(w *world) error{
	"invalid": func(w *world) error {
		_, err := algorithms.Allow(context.Background(), w, "", hourly)
		return err
	},
	"invalid, and the primary says so late": func(w *world) error {
		w.shared.troubled(func(context.Context) error { return fmt.Errorf("oops: %w", algorithms.ErrInvalid) })
		_, err := algorithms.Allow(context.Background(), w, "usr=1", hourly)
		return err
	},
	"hung up before": func(w *world) error {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		_, err := algorithms.Allow(ctx, w, "usr=1", hourly)
		return err
	},
	"hung up": func(w *world) error {
		w.shared.hangs()
		ctx, cancel := context.WithCancel(context.Background())
		time.AfterFunc(3*time.Millisecond, cancel)
		_, err := algorithms.Allow(ctx, w, "usr=1", hourly)
		return err
	},
	"hung up, and the primary wraps it as its own": func(w *world) error {
		ctx, cancel := context.WithCancel(context.Background())
		w.shared.troubled(func(context.Context) error { cancel(); return errLost })
		_, err := algorithms.Allow(ctx, w, "usr=1", hourly)
		return err
	},
	"the caller's deadline": func(w *world) error {
		w.shared.hangs()
		ctx, cancel := context.WithTimeout(context.Background(), 3*time.Millisecond)
		defer cancel()
		_, err := algorithms.Allow(ctx, w, "usr=1", hourly)
		return err
	},
	"a key that holds something else": func(w *world) error {
		w.shared.fails(errWrongType)
		d, err := algorithms.Allow(context.Background(), w, "usr=1", hourly)
		if err == nil && d.Source != algorithms.Local {
			err = fmt.Errorf("the source is %v", d.Source)
		}
		return err
	},
}

// Faults of a caller or of one key do not open the circuit.
func TestFallbackStaysClosed(t *testing.T) {
	t.Parallel()
	for name, call := range blamelessFaults {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, nil)
				for i := range 1_000 {
					err := call(w)
					known := err == nil || errors.Is(err, algorithms.ErrInvalid) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
					if !known || errors.Is(err, algorithms.ErrUnavailable) {
						t.Fatalf("call %d: %v", i, err)
					}
					time.Sleep(time.Millisecond)
				}
				if got := w.stats(); got.Open > 0 || got.Trips > 0 {
					t.Errorf("open %v after %d trips, want it closed", got.Open, got.Trips)
				}
			})
		})
	}
}

// A panic of the primary reaches the caller, and blocks no others.
func TestFallbackPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil)
		w.shared.troubled(func(context.Context) error { panic("primary") })
		for i := range circuit.TripAfter {
			func() {
				defer func() {
					if got := recover(); got != "primary" {
						t.Errorf("call %d: recovered %v, want the primary's panic", i, got)
					}
				}()
				w.take("usr=1", hourly, 1)
			}()
			time.Sleep(defaultDeadline)
		}
		w.shared.fails(errRefused)
		if d := w.take("usr=1", hourly, 1); d.Source != algorithms.Local || w.stats().Open == 0 {
			t.Errorf("after %d panics: got %v, want an open circuit", circuit.TripAfter, d.Source)
		}
	})
}
