// Leases under all kinds of calls at once.

package lease

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/algorithms/limitertest"
)

// Everything at once: every leased unit is accounted for, and none is admitted
// twice.
func TestLeasesUnderConcurrency(t *testing.T) {
	limit := algorithms.FixedWindow(120_000, 365*24*time.Hour)
	// A low HotAt makes the key hot on a busy machine. A long Hold lets callers spend
	// the lease there.
	l := over(t, limitertest.NewFake(), Options{Hold: 100 * time.Millisecond, Share: 50, HotAt: 10})
	l.fake.Silence()
	var kept atomic.Int64
	var wg sync.WaitGroup
	for worker := range 8 {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(worker), 1))
			for range 10_000 {
				units, err := randomCall(l, limit, rng)
				if err != nil {
					t.Error(err)
					return
				}
				kept.Add(units)
			}
			if err := l.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	got := l.stats()
	if got.Spent == 0 || got.Keys != 0 || !got.accounted() {
		t.Errorf("got %+v, want every unit spent, returned or lost", got)
	}
	if used := limit.Requests() - l.left(t, "usr=1", limit); used != kept.Load() || used > limit.Requests() {
		t.Errorf("got %d used in the store, want %d, which were admitted and not returned; %+v", used, kept.Load(), got)
	}
}

// randomCall takes from two keys, and sometimes changes, resets or denies the
// second, or returns the units of the first. It returns the units of the first key
// that were admitted and not returned.
func randomCall(l algorithms.Limiter, limit algorithms.Limit, rng *rand.Rand) (kept int64, err error) {
	call := []algorithms.Check{checkOf("usr=1", limit, 1+rng.Int64N(3)), checkOf("usr=2", limit, 1)}
	switch rng.IntN(200) {
	case 0:
		call[1].Limit = algorithms.FixedWindow(200_000, 365*24*time.Hour)
	case 1:
		call[1].Op, call[1].Cost = algorithms.Reset, 0
		call = call[1:]
	case 2:
		call[1].Limit = algorithms.Nobody()
	}
	if err := l.Allow(context.Background(), call); err != nil {
		return 0, err
	}
	if !algorithms.Allowed(call) || call[0].Op == algorithms.Reset {
		return 0, nil
	}
	if rng.IntN(10) == 0 {
		call[0].Op = algorithms.Return
		return 0, l.Allow(context.Background(), call[:1])
	}
	return call[0].Cost, nil
}
