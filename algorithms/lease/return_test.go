// How unspent units go back: in time, on Close, and if they cannot.

package lease

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/algorithms/internal/step"
	"github.com/penstock-go/penstock/algorithms/limitertest"
	"github.com/penstock-go/penstock/algorithms/shared"
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
				l := newLeased(t, Options{})
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
		l := newLeased(t, Options{})
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
	l := over(t, limitertest.NewFake(), Options{})
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
		l := newLeased(t, Options{})
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

// Units that cannot go back are counted as lost. Close says why.
func TestLostReturnsAreReported(t *testing.T) {
	for name, trouble := range map[string]struct {
		begin func(*limitertest.Fake)
		want  error
	}{
		"an error":  {func(f *limitertest.Fake) { f.Fail(errDown) }, errDown},
		"a timeout": {(*limitertest.Fake).Hang, context.DeadlineExceeded},
		"undecided": {func(f *limitertest.Fake) { f.As(algorithms.Undecided) }, algorithms.ErrUnavailable},
	} {
		synctest.Test(t, func(t *testing.T) {
			l := over(t, limitertest.NewFake(), Options{})
			l.warm(t, "usr=1", algorithms.FixedWindow(2_000, 24*time.Hour))
			trouble.begin(l.fake)
			began := time.Now()
			for range 2 {
				if err := l.Close(); !errors.Is(err, trouble.want) || !strings.Contains(err.Error(), "25 of policy default") {
					t.Errorf("%s: got %v from Close, want %v and the units", name, err, trouble.want)
				}
			}
			if took := time.Since(began); took > time.Second {
				t.Errorf("%s: Close took %v", name, took)
			}
			if got, want := l.stats(), (leaseStats{Blocks: 1, Leased: 25, Lost: 25}); got != want {
				t.Errorf("%s: got %+v, want %+v", name, got, want)
			}
		})
	}
}

// Units that could not go back while the key was hot are lost, and Close reports
// only its own returns.
func TestReturnsAreLostInAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := over(t, limitertest.NewFake(), Options{})
		l.warm(t, "usr=1", algorithms.FixedWindow(2_000, 24*time.Hour))
		l.fake.Fail(errDown)
		time.Sleep(time.Second)
		l.fake.Fail(nil)
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		if got, want := l.stats(), (leaseStats{Blocks: 1, Leased: 25, Lost: 25}); got != want {
			t.Errorf("got %+v, want %+v", got, want)
		}
	})
}

// When Close has ended, the wrapped limiter has all units again that were not
// spent. Later calls pass through, until that limiter is closed and after.
func TestCloseComesBeforeTheWrappedLimiters(t *testing.T) {
	client := redistest.Start(t).Client()
	limit := algorithms.FixedWindow(1_000_000, 365*24*time.Hour)
	limiter := newShared(t, client, shared.Options{})
	l, err := New(limiter, &Options{HotAt: 10})
	if err != nil {
		t.Fatal(err)
	}
	var taken int64
	for s := l.Stats().Lease; s.Spent < 100 || s.Units == 0; s = l.Stats().Lease {
		if !take(t, l, "usr=1", limit, 1).Allowed {
			t.Fatal("got a denial")
		}
		taken++
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if got := leaseStats(l.Stats().Lease); got.Returned == 0 || !got.accounted() {
		t.Errorf("got %+v, want units returned, and none left", got)
	}
	other := newShared(t, client, shared.Options{})
	for _, from := range []algorithms.Limiter{limiter, l, other} {
		if got := take(t, from, "usr=1", limit, 0).Remaining; got != limit.Requests()-taken {
			t.Errorf("got %d left, want %d: all except the units that were admitted", got, limit.Requests()-taken)
		}
	}
}

// Units of a key whose lease ends while the limiter closes go back, too.
func TestLeaseEndsWhileClosing(t *testing.T) {
	limit := algorithms.FixedWindow(2_000, 24*time.Hour)
	l := newLeased(t, Options{})
	for range 50 {
		take(t, l, "usr=1", limit, 1)
	}
	redistest.Until(t, "a block is leased", func() bool { return l.stats().Blocks == 1 })
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	// A caller that was stopped in the middle of endLease goes on after Close.
	c := checkOf("usr=2", limit, 25)
	c.Decision.Receipt = algorithms.ReceiptOf(step.Receipt{Units: 25, Row: step.FixedWindow, Source: uint8(algorithms.Shared)})
	k := &hotKey{key: keyOf(&c), limit: limit, slot: new(slot)}
	k.stock.Store(&stock{none, newBlock(&c, nil, 0, 0, time.Hour)})
	k.slot.hot.Store(k)
	before := l.stats()
	l.endLease(k, limit, false, -time.Hour) // within the window
	after := l.stats()
	if n := len(l.back); n > 0 || after.Returned+after.Lost != before.Returned+before.Lost+25 {
		t.Errorf("%d returns wait: got %+v after %+v, want 25 more units returned or lost", n, after, before)
	}
}
