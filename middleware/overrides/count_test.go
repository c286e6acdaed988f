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
		Count(policy string) map[ratelimit.Mode]int
	}{
		"memory": overrides.NewMemory(),
		"redis":  newRedis(t, redistest.Start(t).Client(), nil),
	} {
		set(t, table, "p", ratelimit.Everyone, ratelimit.Override{Mode: ratelimit.ModeShadow})
		set(t, table, "p", "usr=1", ratelimit.Override{Mode: ratelimit.ModeOff})
		set(t, table, "p", "usr=2", ratelimit.Override{Mode: ratelimit.ModeOff, Until: time.Now().Add(time.Hour)})
		if got, other := table.Count("p"), table.Count("q"); got[ratelimit.ModeShadow] != 1 || got[ratelimit.ModeOff] != 2 || len(got) != 2 || len(other) != 0 {
			t.Errorf("%s: got %v, and %v of another policy, want one in shadow, two off, and none", name, got, other)
		}
		if err := table.Clear(ctx, "p", "usr=1"); err != nil || table.Count("p")[ratelimit.ModeOff] != 1 {
			t.Errorf("%s: got %v, %v after Clear of one, want one that is off", name, table.Count("p"), err)
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
		if got := table.Count("p"); len(got) != 0 {
			t.Errorf("got %v, want none", got)
		}
	})
}

// TestForgottenBans: a ban without an end is found when it is a day old, and no longer once it is lifted.
func TestForgottenBans(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		table, ban := overrides.NewMemory(), ratelimit.Override{Mode: ratelimit.ModeBanned, By: "alice"}
		set(t, table, "p", "usr=1", ban)
		set(t, table, overrides.All, "usr=2", ban)
		set(t, table, "p", ratelimit.Everyone, ratelimit.Override{Mode: ratelimit.ModeOff})
		set(t, table, "q", "usr=3", ratelimit.Override{Mode: ratelimit.ModeBanned, Until: time.Now().Add(48 * time.Hour)})
		time.Sleep(24*time.Hour - time.Second)
		if got := table.Findings(); len(got) != 0 {
			t.Errorf("got %+v before a day has passed, want none", got)
		}
		time.Sleep(time.Second)
		got := table.Findings()
		if len(got) != 2 || got[0].Policy != "" || got[1].Policy != "p" || got[0].Code != "PS301" || !got[1].First.Equal(time.Now()) {
			t.Errorf("got %+v, want one of all policies and one of p, found now", got)
		}
		if err := table.Clear(ctx, "p", "usr=1"); err != nil || len(table.Findings()) != 1 {
			t.Errorf("got %v and %+v, want the other ban alone", err, table.Findings())
		}
	})
}
