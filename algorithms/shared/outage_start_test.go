// Instances that start without Redis, and do not know how many they are.

package shared

import (
	"log/slog"
	"testing"
	"time"

	"github.com/penstock-go/penstock/algorithms"
)

// With default options, each instance that starts while Redis is away admits a whole
// limit, and no more.
func TestInstancesThatStartAdmitWholeLimitsByDefault(t *testing.T) {
	t.Parallel()
	const instances, burst = 4, 20
	for _, limit := range []algorithms.Limit{algorithms.FixedWindow(burst, 24*time.Hour), algorithms.TokenBucket(burst, 1_000*time.Hour)} {
		admitted := 0
		for range instances {
			l := must(t, clientOf(t, "127.0.0.1:1", nil), &Options{Logger: slog.New(slog.DiscardHandler)})
			for take(t, l, "usr=1", limit, 1).Allowed {
				admitted++
			}
		}
		if want := instances * burst; admitted != want {
			t.Errorf("%v: %d instances that start admit %d, want %d", limit, instances, admitted, want)
		}
	}
}
