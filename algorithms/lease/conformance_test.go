// The rules of limiters, kept by leases over a limiter that counts in Redis.

package lease

import (
	"testing"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/algorithms/limitertest"
	"github.com/penstock-go/penstock/algorithms/shared"
	"github.com/penstock-go/penstock/internal/redistest"
)

// Leases change nothing for keys that are not hot. There is no other backend to
// try, because a shared limiter also accepts receipts of a Memory.
func TestLeasesConform(t *testing.T) {
	t.Parallel()
	client := redistest.Start(t).Client()
	limitertest.Run(t, limitertest.Subject{
		New: func(tb testing.TB, now func() time.Time) algorithms.Limiter {
			limiter := newShared(tb, client, shared.Options{Prefix: "limits", Now: now, DenyCacheKeys: shared.DenyCacheOff})
			l, err := New(limiter, &Options{HotAt: 100_000})
			if err != nil {
				tb.Fatal(err)
			}
			tb.Cleanup(func() { _ = l.Close() })
			return l
		},
		Shared: true,
		Source: algorithms.Shared,
		Traces: 20,
	})
}
