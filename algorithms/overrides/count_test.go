// How many overrides there are of a policy.

package overrides_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/penstock-go/penstock/algorithms/overrides"
	"github.com/penstock-go/penstock/internal/redistest"
)

func TestCount(t *testing.T) {
	t.Parallel()
	for name, table := range map[string]interface {
		store
		Count(policy string) int
	}{
		"memory": overrides.NewMemory(),
		"redis":  newRedis(t, redistest.Start(t).Client(), nil),
	} {
		set(t, table, "p", overrides.Everyone, overrides.Override{Mode: overrides.Shadow})
		set(t, table, "p", "usr=1", overrides.Override{Mode: overrides.Off})
		set(t, table, "p", "usr=2", overrides.Override{Mode: overrides.Off, Until: time.Now().Add(time.Hour)})
		if got, other := table.Count("p"), table.Count("q"); got != 3 || other != 0 {
			t.Errorf("%s: got %d, and %d of another policy, want 3 and 0", name, got, other)
		}
		if err := table.Clear(ctx, "p", "usr=1"); err != nil || table.Count("p") != 2 {
			t.Errorf("%s: got %d, %v after one was cleared, want 2", name, table.Count("p"), err)
		}
	}
}

// What has ended does not count.
func TestCountOfTheLiving(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		table := overrides.NewMemory()
		set(t, table, "p", "usr=1", overrides.Override{Mode: overrides.Off, Until: time.Now().Add(time.Minute)})
		time.Sleep(time.Minute)
		if got := table.Count("p"); got != 0 {
			t.Errorf("got %d, want 0", got)
		}
	})
}
