// Tests of the changes that a table remembers.

package overrides_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/penstock-go/penstock/internal/redistest"
	"github.com/penstock-go/penstock/middleware"
	"github.com/penstock-go/penstock/middleware/overrides"
)

// seen returns the changes of a table, such as "p usr=1 banned".
func seen(s interface {
	Changes(func(time.Time, string, string, *ratelimit.Override))
}) (all []string) {
	s.Changes(func(at time.Time, policy, key string, o *ratelimit.Override) {
		text := policy + " " + key + " cleared"
		if o != nil {
			text = policy + " " + key + " " + string(o.Mode)
		}
		if time.Since(at) > time.Minute {
			text += " at " + at.String()
		}
		all = append(all, text)
	})
	return all
}

// A Memory remembers the latest changes, and an edit that fails is none.
func TestMemoryChanges(t *testing.T) {
	m := overrides.NewMemory()
	set(t, m, "p", "usr=1", ratelimit.Override{Mode: ratelimit.ModeBanned})
	if err := m.Set(ctx, "p", "usr=1", ratelimit.Override{Mode: "loud"}); err == nil {
		t.Error("got no error")
	}
	for _, key := range []string{"usr=1", "usr=2"} {
		if err := m.Clear(ctx, "p", key); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := seen(m), []string{"p usr=1 banned", "p usr=1 cleared"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	for i := range 50 {
		set(t, m, "p", fmt.Sprint("usr=", i), ratelimit.Override{Mode: ratelimit.ModeOff})
	}
	if got := seen(m); len(got) != 32 || got[0] != "p usr=18 off" || got[31] != "p usr=49 off" {
		t.Errorf("got %d changes from %q to %q, want the latest 32", len(got), got[0], got[len(got)-1])
	}
}

// A Redis remembers the changes of all instances, and not what it found at its start.
func TestRedisChanges(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	a := newRedis(t, s.Client(), nil)
	set(t, a, "p", "usr=1", ratelimit.Override{Mode: ratelimit.ModeOff})
	set(t, a, "p", "usr=2", ratelimit.Override{Mode: ratelimit.ModeOff})
	b := newRedis(t, s.Client(), nil)
	if err := b.Refresh(ctx); err != nil {
		t.Fatal(err)
	}
	if got := seen(b); len(got) != 0 {
		t.Errorf("got %q at the start, want nothing", got)
	}
	set(t, a, "p", "usr=1", ratelimit.Override{Mode: ratelimit.ModeBanned})
	if err := a.Clear(ctx, "p", "usr=2"); err != nil {
		t.Fatal(err)
	}
	set(t, a, "q", "usr=3", ratelimit.Override{Mode: ratelimit.ModeShadow})
	if err := a.Clear(ctx, "q", "usr=3"); err != nil { // the last of its policy
		t.Fatal(err)
	}
	for name, r := range map[string]*overrides.Redis{"the editor": a, "another instance": b} {
		if err := r.Refresh(ctx); err != nil {
			t.Fatal(err)
		}
		got := seen(r)
		for _, want := range []string{"p usr=1 banned", "p usr=2 cleared"} {
			if !slices.Contains(got, want) {
				t.Errorf("%s: got %q, want %q", name, got, want)
			}
		}
	}
	if got := seen(a); !slices.Contains(got, "q usr=3 shadow") || !slices.Contains(got, "q usr=3 cleared") {
		t.Errorf("got %q of the editor, want each of its edits", got)
	}
}
