// The life of a fallback: its end, its beats, and its share of limits.

package shared

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/algorithms/shared/internal/trouble"
	"github.com/penstock-go/penstock/internal/redistest"
)

func TestFallbackOptionsMistakes(t *testing.T) {
	tests := map[string]struct {
		o    Options
		want []string
	}{
		"all at once": {
			Options{Deadline: -time.Second, Instances: -1},
			[]string{"Deadline is -1s", "Instances is -1"},
		},
		"many instances": {Options{Instances: maxInstances + 1}, []string{"Instances is 100001"}},
	}
	for name, tt := range tests {
		l, err := New(redistest.Script(nil), &tt.o)
		if l != nil || err == nil {
			t.Errorf("%s: got %v, %v, want an error alone", name, l, err)
			continue
		}
		if lines := strings.Count(err.Error(), "\n") + 1; lines != len(tt.want) {
			t.Errorf("%s: got %d mistakes in %q, want %d", name, lines, err, len(tt.want))
		}
		for _, want := range tt.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: got %q, want it to mention %q", name, err, want)
			}
		}
	}
}

func TestFallbackClose(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	w := newWorld(t, nil)
	for range 2 {
		if err := w.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	}
	if d := w.take("usr=1", hourly, 1); !d.Allowed {
		t.Errorf("after Close: got %+v, want it to go on deciding", d)
	}
}

// Close ends a recovery. It waits for the probe that is under way, and for no other.
func TestFallbackCloseWhileRecovering(t *testing.T) {
	for name, after := range map[string]time.Duration{
		"the primary is left alone":  time.Second,
		"a probe is under way":       30*time.Second + 250*time.Millisecond,
		"between attempts of probes": 32 * time.Second,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, nil)
				w.trip()
				w.shared.hangs()
				time.Sleep(after)
				start := time.Now()
				var closers sync.WaitGroup
				for range 10 {
					closers.Go(func() { _ = w.Close() })
				}
				closers.Wait()
				if took := time.Since(start); took > probeFor {
					t.Errorf("Close took %v, want the rest of a probe at most", took)
				}
				_, probes := w.shared.asked()
				w.shared.fails(nil)
				time.Sleep(time.Minute)
				if _, got := w.shared.asked(); got != probes {
					t.Error("probes after Close")
				}
				if d := w.take("usr=1", hourly, 1); d.Source != algorithms.Local {
					t.Errorf("after Close: got %v, want the memory to go on deciding", d.Source)
				}
				if got := w.log.messages(); !slices.Equal(got, []string{logUnavailable}) {
					t.Errorf("got the log %q, want opened only: it did not close", got)
				}
			})
		})
	}
}

func TestFallbackReady(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil)
		if err := w.Ready(context.Background()); err != nil {
			t.Errorf("at start: %v", err)
		}
		w.trip()
		if err := w.Ready(context.Background()); !errors.Is(err, errRefused) {
			t.Errorf("while open: got %v, want the cause", err)
		}
		w.recovers()
		if err := w.Ready(context.Background()); err != nil {
			t.Errorf("after recovery: %v", err)
		}
	})
}

// While the circuit is open, Ready says what to do about a misconfiguration, as
// it does while the circuit is closed.
func TestFallbackReadyNamesAMisconfiguration(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil)
		w.shared.fails(errors.New("NOAUTH Authentication required."))
		for w.stats().Open == 0 {
			w.take("usr=1", hourly, 1)
			time.Sleep(defaultDeadline)
		}
		err := w.Ready(context.Background())
		if !errors.Is(err, ErrMisconfigured) || !strings.Contains(err.Error(), trouble.FaultPassword.Advice) || Reason(err) != trouble.Configuration {
			t.Errorf("got %v, want ErrMisconfigured with the advice %q", err, trouble.FaultPassword.Advice)
		}
	})
}

func TestFallbackCountsInstances(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t, shared: newFakePrimary(), memory: newMemory()}
		w.shared.counts(0, context.DeadlineExceeded)
		w.start(w.shared, &Options{Instances: 4})
		want := func(when string, instances int) {
			t.Helper()
			synctest.Wait()
			if got := w.stats().Instances; got != instances {
				t.Errorf("%s: got %d instances, want %d", when, got, instances)
			}
			w.wantShare(when, int64(instances))
		}
		want("before the primary was seen", 4)
		var s algorithms.Stats
		if w.report.addStats(&s); s.Redis.Errors["timeout"] != 1 {
			t.Errorf("got the errors %v, want the beat's timeout: no caller has ended it", s.Redis.Errors)
		}
		if got := w.log.messages(); !slices.Equal(got, []string{logPrefix + "Redis failure"}) {
			t.Errorf("got the log %q, want the failure of the beat", got)
		}
		w.shared.counts(8, nil)
		time.Sleep(beatEvery + time.Second)
		want("after a beat", 8)
		w.shared.counts(0, nil)
		time.Sleep(liveFor)
		want("of none, so far", 8)
		time.Sleep(beatEvery)
		want("of none", 1)
		w.shared.counts(3, nil)
		time.Sleep(beatEvery)
		w.trip()
		before := w.shared.counts(2, nil)
		time.Sleep(20 * time.Second)
		if w.shared.counts(2, nil) != before {
			t.Error("beats while the circuit is open")
		}
		want("in an outage", 3)
		w.recovers()
		time.Sleep(liveFor + beatEvery)
		want("after it", 2)
		_ = w.Close()
		if w.shared.retired != 1 {
			t.Errorf("retired %d times, want once, on Close", w.shared.retired)
		}
	})
}

// wantShare wants this process's share to be one part in so many.
func (w *world) wantShare(when string, parts int64) {
	w.t.Helper()
	whole := algorithms.TokenBucket(100, time.Minute)
	if got, want := w.fallback.share(whole.Step()), whole.Step().Share(1, parts); got != want {
		w.t.Errorf("%s: got a share of %+v, want one part in %d: %+v", when, got, parts, want)
	}
}

// A primary that has lost its data knows only the instances that have made
// themselves known again.
func TestFallbackCountsInstancesAfterALoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t, shared: newFakePrimary(), memory: newMemory()}
		w.shared.counts(4, nil)
		w.start(w.shared, nil)
		synctest.Wait()
		for range 3 { // one loss after the other, before and after an outage
			w.shared.counts(1, nil)
			time.Sleep(2 * beatEvery)
			w.trip()
			time.Sleep(beatEvery)
			w.recovers()
			time.Sleep(2 * beatEvery)
			w.wantShare("alone", 4)
			w.shared.counts(4, nil)
			time.Sleep(beatEvery)
		}
		w.shared.counts(2, nil)
		time.Sleep(liveFor + 2*beatEvery)
		w.wantShare("when two have been gone for long", 2)
	})
}
