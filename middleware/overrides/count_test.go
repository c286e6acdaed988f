// Tests of Count.

package overrides_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/penstock-go/penstock/internal/redistest"
	ratelimit "github.com/penstock-go/penstock/middleware"
	"github.com/penstock-go/penstock/middleware/overrides"
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
		set(t, table, "p", ratelimit.Everyone, ratelimit.Override{Mode: ratelimit.ModeShadow})
		set(t, table, "p", "usr=1", ratelimit.Override{Mode: ratelimit.ModeOff})
		set(t, table, "p", "usr=2", ratelimit.Override{Mode: ratelimit.ModeOff, Until: time.Now().Add(time.Hour)})
		if got, other := table.Count("p"), table.Count("q"); got != 3 || other != 0 {
			t.Errorf("%s: got %d, and %d of another policy, want 3 and 0", name, got, other)
		}
		if err := table.Clear(ctx, "p", "usr=1"); err != nil || table.Count("p") != 2 {
			t.Errorf("%s: got %d, %v after Clear of one, want 2", name, table.Count("p"), err)
		}
	}
}

// Ended overrides do not count.
func TestCountWithoutEnded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		table := overrides.NewMemory()
		set(t, table, "p", "usr=1", ratelimit.Override{Mode: ratelimit.ModeOff, Until: time.Now().Add(time.Minute)})
		time.Sleep(time.Minute)
		if got := table.Count("p"); got != 0 {
			t.Errorf("got %d, want 0", got)
		}
	})
}
