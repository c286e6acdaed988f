// Checks without HTTP.

package algorithms_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/penstock-go/penstock/algorithms"
)

func TestWaitIsAdmittedWhenPromised(t *testing.T) {
	for _, limit := range []algorithms.Limit{
		algorithms.TokenBucket(7, time.Second).WithBurst(2),
		algorithms.SlidingWindowCounter(3, time.Second),
		algorithms.SlidingWindowLog(3, time.Second),
		algorithms.FixedWindow(3, time.Second),
	} {
		synctest.Test(t, func(t *testing.T) {
			m := newMemory(t, nil)
			for i := range 12 {
				d, err := algorithms.AllowN(t.Context(), m, "usr=1", limit, 0)
				if err != nil {
					t.Fatal(err)
				}
				start := time.Now()
				if err := algorithms.Wait(t.Context(), m, "usr=1", limit); err != nil {
					t.Fatalf("%v, call %d: %v", limit, i, err)
				}
				if waited := time.Since(start); waited != d.UnitAfter {
					t.Errorf("%v, call %d: got in after %v, promised %v", limit, i, waited, d.UnitAfter)
				}
			}
		})
	}
}

func TestWaitHoldsAndGivesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, limit := newMemory(t, nil), algorithms.LeakyBucket(1, time.Second).WithBurst(3)
		start := time.Now()
		for i := range 2 {
			if err := algorithms.Wait(t.Context(), m, "usr=1", limit); err != nil || time.Since(start) != time.Duration(i)*time.Second {
				t.Fatalf("call %d: got %v after %v, want its turn at %ds", i, err, time.Since(start), i)
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			time.Sleep(300 * time.Millisecond)
			cancel()
		}()
		if err := algorithms.Wait(ctx, m, "usr=1", limit); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v, want the context's error", err)
		}
		d, err := algorithms.AllowN(t.Context(), m, "usr=1", limit, 0)
		if err != nil || d.Remaining != 2 {
			t.Errorf("got %d places, %v, want 2: the abandoned one is back", d.Remaining, err)
		}
	})
}

func TestWaitGivesUpAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, limit := newMemory(t, nil), algorithms.FixedWindow(1, time.Hour)
		start := time.Now()
		if err := algorithms.Wait(t.Context(), m, "usr=1", algorithms.Nobody()); !errors.Is(err, algorithms.ErrInvalid) || !strings.Contains(err.Error(), "no wait helps: the limit nobody") {
			t.Errorf("nobody: got %v, want that no wait helps", err)
		}
		if err := algorithms.WaitN(t.Context(), m, "usr=1", limit, 2); !errors.Is(err, algorithms.ErrInvalid) || !strings.Contains(err.Error(), "never admits a cost of 2") {
			t.Errorf("2 of a limit of 1: got %v, want that no wait helps", err)
		}
		take(t, m, "usr=1", limit)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := algorithms.Wait(ctx, m, "usr=1", limit); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a deadline before the window's end: got %v, want DeadlineExceeded", err)
		}
		if err := algorithms.Wait(ctx, m, "", limit); !errors.Is(err, algorithms.ErrInvalid) {
			t.Errorf("no key: got %v, want ErrInvalid", err)
		}
		running := algorithms.Concurrent(1, time.Hour)
		if err := algorithms.Wait(ctx, m, "usr=1", running); !errors.Is(err, algorithms.ErrInvalid) {
			t.Errorf("concurrent requests: got %v, want ErrInvalid", err)
		}
		if d := take(t, m, "usr=1", running); !d.Allowed {
			t.Errorf("got %+v, want nothing held by a Wait that failed", d)
		}
		if waited := time.Since(start); waited != 0 {
			t.Errorf("waited %v, want no time", waited)
		}
	})
}

func TestNUnitsAreTakenTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, limit := newMemory(t, nil), algorithms.TokenBucket(10, time.Second)
		for _, tt := range []struct {
			n         int64
			allowed   bool
			remaining int64
		}{{7, true, 3}, {4, false, 3}, {0, true, 3}, {3, true, 0}} {
			d, err := algorithms.AllowN(t.Context(), m, "usr=1", limit, tt.n)
			if err != nil || d.Allowed != tt.allowed || d.Remaining != tt.remaining {
				t.Errorf("%d units: got %+v, %v, want allowed %t and %d left", tt.n, d, err, tt.allowed, tt.remaining)
			}
		}
		start := time.Now()
		if err := algorithms.WaitN(t.Context(), m, "usr=1", limit, 5); err != nil || time.Since(start) != 500*time.Millisecond {
			t.Errorf("waiting for 5 units: got %v after %v, want them after half a second", err, time.Since(start))
		}
		if _, err := algorithms.AllowN(t.Context(), m, "usr=1", limit, -1); !errors.Is(err, algorithms.ErrInvalid) {
			t.Errorf("-1 units: got %v, want ErrInvalid", err)
		}
	})
}

// All units of a WaitN go back when the context ends during the hold.
func TestWaitNGivesAllBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, limit := newMemory(t, nil), algorithms.LeakyBucket(1, time.Second).WithBurst(5)
		if err := algorithms.WaitN(t.Context(), m, "usr=1", limit, 2); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Millisecond, cancel)
		if err := algorithms.WaitN(ctx, m, "usr=1", limit, 3); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v, want the context's error", err)
		}
		if d, err := algorithms.AllowN(t.Context(), m, "usr=1", limit, 0); err != nil || d.Remaining != 3 {
			t.Errorf("got %d places, %v, want 3: the abandoned ones are back", d.Remaining, err)
		}
	})
}

// However many callers share a limit, they take all of it and no more. No caller goes without while units are left.
func TestAllowUpToIsAtomic(t *testing.T) {
	m, limit := newMemory(t, nil), algorithms.FixedWindow(1000, 24*time.Hour)
	var wg sync.WaitGroup
	var all, less atomic.Int64
	for range 8 {
		wg.Go(func() {
			for range 20 {
				taken, d, err := algorithms.AllowUpTo(t.Context(), m, "usr=1", limit, 7)
				if err != nil {
					t.Error(err)
				}
				if all.Add(taken); taken < 7 {
					less.Add(1)
					if d.Remaining != 0 || d.Allowed {
						t.Errorf("got %d of 7 and %+v, want all that fitted", taken, d)
					}
				}
			}
		})
	}
	wg.Wait()
	if all.Load() != 1000 || less.Load() != 160-142 { // 142 callers take 7, one 6
		t.Errorf("got %d units, and less than 7 in %d of 160 calls, want 1000 and 18", all.Load(), less.Load())
	}
}

func TestAllowUpToInvalid(t *testing.T) {
	m := newMemory(t, nil)
	for name, tt := range map[string]struct {
		limit algorithms.Limit
		n     int64
	}{"units that nothing returns": {algorithms.Concurrent(2, time.Second), 1}, "less than nothing": {algorithms.FixedWindow(2, time.Hour), -1}, "no limit": {algorithms.Limit{}, 3}} {
		if taken, _, err := algorithms.AllowUpTo(t.Context(), m, "usr=1", tt.limit, tt.n); taken != 0 || !errors.Is(err, algorithms.ErrInvalid) {
			t.Errorf("%s: got %d, error %v, want ErrInvalid", name, taken, err)
		}
	}
	taken, d, err := algorithms.AllowUpTo(t.Context(), m, "usr=1", algorithms.FixedWindow(5, 24*time.Hour), math.MaxInt64)
	if taken != 5 || d.Allowed || err != nil {
		t.Errorf("as many as there are: got %d, %+v, error %v, want 5", taken, d, err)
	}
}
