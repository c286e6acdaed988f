// How unspent units go back: in time, on Close, and if they cannot.

package shared

import (
	"context"
	"errors"
	"math"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/algorithms/internal/step"
	"github.com/penstock-go/penstock/algorithms/limitertest"
	"github.com/penstock-go/penstock/internal/redistest"
)

// Unspent units go back when Hold has passed, and on Close.
func TestLeasesGoBack(t *testing.T) {
	for _, limit := range leasable() {
		for name, end := range map[string]func(l leased){
			"hold":  func(leased) { time.Sleep(100 * time.Millisecond) },
			"close": func(l leased) { _ = l.Close() },
		} {
			synctest.Test(t, func(t *testing.T) {
				l := newLeased(t, LeaseOptions{})
				taken := l.warm(t, "usr=1", limit)
				for range 5 {
					take(t, l, "usr=1", limit, 1)
				}
				end(l)
				synctest.Wait()
				if got, want := l.left(t, "usr=1", limit), 2_000-taken-5; got != want {
					t.Errorf("%v after %s: got %d left, want %d: all except the units that were spent", limit, name, got, want)
				}
				if got, want := l.stats(), (leaseStats{Blocks: 1, Leased: 25, Spent: 5, Returned: 20}); got != want {
					t.Errorf("%v after %s: got %+v, want %+v", limit, name, got, want)
				}
				l.fake.Drain()
				take(t, l, "usr=1", limit, 1)
				if asked := l.fake.Drain(); len(asked) != 1 {
					t.Errorf("%v after %s: got %d checks below, want the take", limit, name, len(asked))
				}
			})
		}
	}
}

// Close waits for a block that is under way, and gives it back, too.
func TestCloseWaitsForBlocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limit := algorithms.FixedWindow(2_000, 24*time.Hour)
		l := newLeased(t, LeaseOptions{})
		l.slowBlocks(50 * time.Millisecond)
		l.heat(t, "usr=1", limit)
		synctest.Wait()
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		if got := l.left(t, "usr=1", limit); got != 2_000-50 {
			t.Errorf("got %d left after Close, want %d", got, 2_000-50)
		}
	})
}

func TestCloseMayBeRepeatedAndEndsEverything(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	l := coverFake(limitertest.NewFake(), Options{Lease: &LeaseOptions{}, DenyCacheKeys: DenyCacheOff})
	limit := algorithms.TokenBucket(1_000_000_000, time.Second)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 20_000 {
				take(t, l, "usr=1", limit, 1)
			}
		})
		wg.Go(func() {
			for l.stats().Blocks == 0 {
				take(t, l, "usr=1", limit, 1)
			}
			if err := l.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if got := l.stats(); got.Keys != 0 || got.Blocks == 0 || !got.accounted() {
		t.Errorf("got %+v, want all leased units spent or returned", got)
	}
}

// A key that stays hot gives back its unspent units when Hold has passed.
func TestHotKeysGiveBackUnspentUnits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limit := algorithms.FixedWindow(2_000, 24*time.Hour)
		l := newLeased(t, LeaseOptions{})
		l.warm(t, "usr=1", limit)
		for range 30 { // 300 per second; the first 25 units last for 75 ms
			time.Sleep(time.Second / 300)
			take(t, l, "usr=1", limit, 1)
		}
		synctest.Wait()
		if got := l.stats(); got.Keys != 1 || got.Returned == 0 || got.Returned > 3 {
			t.Errorf("got %+v, want a hot key that gave back some of its first 25", got)
		}
	})
}

// Units that cannot go back are counted and logged with their policy and the
// reason.
func TestLostReturnsAreReported(t *testing.T) {
	for lost, reason := range map[error]error{errDown: errDown, context.DeadlineExceeded: errTimeout} {
		synctest.Test(t, func(t *testing.T) {
			var log logRecords
			l := coverFake(limitertest.NewFake(), Options{Lease: &LeaseOptions{}, DenyCacheKeys: DenyCacheOff, Logger: log.logger()})
			l.warm(t, "usr=1", algorithms.FixedWindow(2_000, 24*time.Hour))
			l.fake.Fail(lost)
			for range 2 {
				if err := l.Close(); !errors.Is(err, lost) || !errors.Is(err, reason) {
					t.Errorf("Close: got %v, want %v and %v", err, lost, reason)
				}
			}
			synctest.Wait()
			messages := log.messages()
			if len(messages) != 1 || l.report.returnsFailed.Load() != 1 || l.stats().Lost != 25 {
				t.Fatalf("got %q, %d returns failed and %+v, want one line, one return, and 25 units lost",
					messages, l.report.returnsFailed.Load(), l.stats())
			}
			policy, cause := log.attr(messages[0], "policy"), log.attr(messages[0], "error")
			if err, ok := cause.(error); policy != "default" || !ok || !errors.Is(err, reason) {
				t.Errorf("got policy %v and error %v, want default and %v", policy, cause, reason)
			}
		})
	}
}

// A limiter below that could not decide a return has lost its units, too.
func TestUndecidedReturnsAreReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := coverFake(limitertest.NewFake(), Options{Lease: &LeaseOptions{}, DenyCacheKeys: DenyCacheOff})
		l.warm(t, "usr=1", algorithms.FixedWindow(2_000, 24*time.Hour))
		l.fake.As(algorithms.Undecided)
		if err := l.Close(); !errors.Is(err, algorithms.ErrUnavailable) || l.stats().Lost != 25 || l.report.returnsFailed.Load() != 1 {
			t.Errorf("got %v, %+v, %d returns failed, want 25 units lost and reported",
				err, l.stats(), l.report.returnsFailed.Load())
		}
	})
}

// Units of a key whose lease ends while the limiter closes go back, too.
func TestLeaseEndsWhileClosing(t *testing.T) {
	limit := algorithms.FixedWindow(2_000, 24*time.Hour)
	l := newLeased(t, LeaseOptions{})
	for range 50 {
		take(t, l, "usr=1", limit, 1)
	}
	redistest.Until(t, "a block is leased", func() bool { return l.stats().Blocks == 1 })
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	// A caller that was stopped in the middle of endLease goes on after Close.
	k := &hotKey{key: step.Key{Policy: "default", Text: "usr=2", Scope: step.FixedWindow}, limit: *limit.Step(), slot: new(slot)}
	b := &block{size: 25, turn: math.MaxInt64, receipt: step.Receipt{Units: 25, Row: step.FixedWindow, Source: uint8(algorithms.Shared)}}
	b.left.Store(25)
	k.stock.Store(&stock{none, b})
	k.slot.hot.Store(k)
	before := l.stats()
	l.lease.endLease(k, &k.limit, false, l.lease.now())
	after := l.stats()
	if n := len(l.lease.back); n > 0 || after.Returned+after.Lost != before.Returned+before.Lost+25 {
		t.Errorf("%d returns wait for nobody: got %+v after %+v, want 25 more units returned or lost", n, after, before)
	}
}
