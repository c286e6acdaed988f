// An instance that starts while the primary is away.

package shared

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/penstock-go/penstock/algorithms"
)

// An instance that starts during an outage knows no denial, so it admits its
// share of every limit, and no more.
func TestInstanceThatStartsAdmitsItsShare(t *testing.T) {
	t.Parallel()
	const instances, burst = 4, 20
	for _, l := range []algorithms.Limit{
		algorithms.TokenBucket(burst, 1_000*time.Hour), algorithms.SlidingWindowLog(burst, 1_000*time.Hour),
		algorithms.FixedWindow(burst, 1_000*time.Hour),
	} {
		synctest.Test(t, func(t *testing.T) {
			store := newStateStore()
			old := &world{t: t, shared: &fakePrimary{store: over(store)}, memory: newMemory()}
			old.start(old.shared, &Options{Instances: instances, Views: 100})
			old.drain("usr=1", l)
			old.shared.fails(errRefused)
			time.Sleep(2 * freshFor) // views no longer answer by themselves
			if n := old.drain("usr=1", l); n != 0 {
				t.Errorf("%v: an instance that knows the denial admits %d, want none", l, n)
			}
			for range 2 {
				w := &world{t: t, shared: &fakePrimary{store: over(store)}, memory: newMemory()}
				w.start(w.shared, &Options{Instances: instances, Views: 100})
				w.shared.fails(errRefused)
				if n := w.drain("usr=1", l); n != burst/instances {
					t.Errorf("%v: an instance that starts admits %d, want its share of %d", l, n, burst/instances)
				}
			}
		})
	}
}
