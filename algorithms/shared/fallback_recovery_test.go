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
)

// hourly is a limit that these tests never spend.
var hourly = algorithms.FixedWindow(1_000, time.Hour)

func TestFallbackRecovers(t *testing.T) {
	tests := map[string]struct {
		backAfter  time.Duration // the opening, by the latest probe
		closedFrom time.Duration // since the opening
		closedTill time.Duration
	}{
		"at the first probe":                        {0, 27 * time.Second, 30*time.Second + 200*time.Millisecond},
		"while the client replays its dial errors":  {28 * time.Second, 28 * time.Second, 32 * time.Second},
		"after an attempt that failed from 27 s on": {34 * time.Second, 54 * time.Second, 64 * time.Second},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, nil)
				w.trip()
				opened := time.Now()
				users, _ := w.shared.asked()
				time.AfterFunc(tt.backAfter, func() { w.shared.fails(nil) })
				for w.stats().Open {
					time.Sleep(10 * time.Millisecond)
					if got, _ := w.shared.asked(); got != users {
						t.Fatal("a user's call reached the primary while the circuit was open")
					}
					if d := w.take("usr=1", hourly, 0); w.stats().Open && d.Source != algorithms.Local {
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
				want := w.stats().Local - tripAfter
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

// Instances do not return together, and none returns early.
func TestFallbackLeavesThePrimaryAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var waits []time.Duration
		for range 30 {
			w := newWorld(t, nil)
			w.trip()
			opened := time.Now()
			time.Sleep(34 * time.Second)
			at := w.shared.probedAt()
			if len(at) == 0 {
				t.Fatal("no probe within 34 s")
			}
			waits = append(waits, at[0].Sub(opened))
			if n, last := len(at), at[len(at)-1].Sub(at[0]); n < 10 || n > 16 || last > probesFor {
				t.Errorf("got %d probes within %v, want about 15 within %v", n, last, probesFor)
			}
			time.Sleep(30 * time.Second)
			if next := w.shared.probedAt()[len(at)].Sub(at[len(at)-1]); next < 27*time.Second || next > 31*time.Second {
				t.Errorf("the next attempt came %v after the last, want 27 s to 30 s", next)
			}
			_ = w.Close()
		}
		slices.Sort(waits)
		if first, last := waits[0], waits[len(waits)-1]; first < 27*time.Second || last > 30*time.Second+probeEvery {
			t.Errorf("first probes after %v to %v, want 27 s to 30 s", first, last)
		} else if last-first < time.Second {
			t.Errorf("first probes of 30 instances within %v, want them spread", last-first)
		}
	})
}

// A probe that is not answered ends by its deadline, and no user's call passes
// instead.
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
		time.Sleep(2 * time.Second)
		_, probes := w.shared.asked()
		if probes < 5 {
			t.Errorf("got %d probes in two seconds, want the deadline to end each", probes)
		}
		w.shared.fails(nil)
		time.Sleep(20 * time.Second)
		if _, got := w.shared.asked(); got != probes {
			t.Errorf("%d more probes within 22 s: a probe that hangs has failed", got-probes)
		}
		time.Sleep(12 * time.Second)
		if w.stats().Open {
			t.Error("open half a minute after a probe hung")
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
			if i >= tripAfter {
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
				if got := w.stats(); got.Open || got.Trips > 0 {
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
		for i := range tripAfter {
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
		if d := w.take("usr=1", hourly, 1); d.Source != algorithms.Local || !w.stats().Open {
			t.Errorf("after %d panics: got %v, want an open circuit", tripAfter, d.Source)
		}
	})
}
