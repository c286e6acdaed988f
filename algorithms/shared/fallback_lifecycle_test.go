package shared

import (
	"context"
	"errors"
	"github.com/penstock-go/penstock/algorithms"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

func TestFallbackOptionsMistakes(t *testing.T) {
	m := newMemory()
	tests := map[string]struct {
		primary, secondary Limiter
		o                  Options
		want               []string
	}{
		"no primary":   {nil, m, Options{}, []string{"primary"}},
		"no secondary": {m, nil, Options{}, []string{"secondary"}},
		"all at once": {
			nil, nil, Options{Deadline: -time.Second, OpenFor: -time.Minute, Instances: -1, Share: 101},
			[]string{"primary", "Deadline is -1s", "OpenFor is -1m0s", "Instances is -1", "Share is 101"},
		},
		"many instances": {m, m, Options{Instances: maxInstances + 1}, []string{"Instances is 100001"}},
		"negative share": {m, m, Options{Share: -1}, []string{"Share is -1"}},
	}
	for name, tt := range tests {
		f, err := NewFallback(tt.primary, tt.secondary, &tt.o)
		if f != nil || err == nil {
			t.Errorf("%s: got %v, %v, want an error alone", name, f, err)
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
	m := newMemory()
	f, err := NewFallback(m, m, nil)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := f.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	}
	if d := take(t, f, "usr=1", hourly, 1); !d.Allowed {
		t.Errorf("after Close: got %+v, want it to go on deciding", d)
	}
}

// Close does not wait for a recovery.
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
				if took := time.Since(start); took > 0 {
					t.Errorf("Close took %v, want it at once", took)
				}
				_, probes := w.shared.asked()
				w.shared.fails(nil)
				time.Sleep(time.Minute)
				if _, got := w.shared.asked(); got != probes {
					t.Error("probes after Close")
				}
				if d := w.take("usr=1", hourly, 1); d.Source != algorithms.Local {
					t.Errorf("after Close: got %v, want the secondary to go on deciding", d.Source)
				}
				if got := w.kinds(); !slices.Equal(got, []EventKind{EventOpened}) {
					t.Errorf("got events %v, want opened only: it did not close", got)
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

// A counted primary tells how many instances are live.
type counted struct {
	*fakePrimary
	mu      sync.Mutex
	live    int64
	err     error
	beats   int
	retired int
}

func (c *counted) beat(context.Context, string) (int64, time.Duration, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.beats++
	return c.live, 0, c.err
}

func (c *counted) retire(context.Context, string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.retired++
	return nil
}

func (c *counted) set(live int64, err error) (beats int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.live, c.err = live, err
	return c.beats
}

func TestFallbackCountsInstances(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t, shared: newFakePrimary(), secondary: newMemory()}
		p := &counted{fakePrimary: w.shared, err: context.DeadlineExceeded}
		w.start(p, &Options{Instances: 4})
		want := func(when string, instances int, part portion) {
			t.Helper()
			synctest.Wait()
			if got := w.stats().Instances; got != instances || w.portion() != part {
				t.Errorf("%s: got %d instances, a part of %v, want %d, %v", when, got, w.portion(), instances, part)
			}
		}
		want("before the primary was seen", 4, portion{1, 4})
		if got := w.kinds(); !slices.Equal(got, []EventKind{EventError}) {
			t.Errorf("got events %v, want the beat's error", got)
		} else if e := w.events[0]; e.Class != ErrorTimeout {
			t.Errorf("got %v of class %v, want a timeout: no caller has ended it", e.Err, e.Class)
		}
		p.set(8, nil)
		time.Sleep(beatEvery + time.Second)
		want("after a beat", 8, portion{1, 8})
		p.set(0, nil)
		time.Sleep(liveFor)
		want("of none, so far", 8, portion{1, 8})
		time.Sleep(beatEvery)
		want("of none", 1, portion{1, 1})
		p.set(3, nil)
		time.Sleep(beatEvery)
		w.trip()
		before := p.set(2, nil)
		time.Sleep(20 * time.Second)
		if p.set(2, nil) != before {
			t.Error("beats while the circuit is open")
		}
		want("in an outage", 3, portion{1, 3})
		w.recovers()
		time.Sleep(liveFor)
		want("after it", 2, portion{1, 2})
		_ = w.Close()
		if p.retired != 1 {
			t.Errorf("retired %d times, want once, on Close", p.retired)
		}
	})
}

// A primary that has lost its data knows those instances only that have made
// themselves known again.
func TestFallbackCountsInstancesAfterALoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t, shared: newFakePrimary(), secondary: newMemory()}
		p := &counted{fakePrimary: w.shared, live: 4}
		w.start(p, nil)
		synctest.Wait()
		for range 3 { // one loss after the other, some of them found in an outage
			p.set(1, nil)
			time.Sleep(2 * beatEvery)
			w.trip()
			w.recovers()
			time.Sleep(2 * beatEvery)
			if got := w.portion(); got != (portion{1, 4}) {
				t.Fatalf("alone with a part of %v, want a quarter", got)
			}
			p.set(4, nil)
			time.Sleep(beatEvery)
		}
		p.set(2, nil)
		time.Sleep(liveFor + 2*beatEvery)
		if got := w.portion(); got != (portion{1, 2}) {
			t.Errorf("a part of %v when two have been gone for long, want a half", got)
		}
	})
}

func TestFallbackShareOverridesInstances(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, &Options{Instances: 4, Share: 60})
		w.trip()
		if d := w.take("usr=1", algorithms.TokenBucket(10, time.Minute), 1); d.Remaining != 5 {
			t.Errorf("got %d remaining, want 5 of the 6 that are 60 %% of 10", d.Remaining)
		}
	})
}
