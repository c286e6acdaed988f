package ban

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/penstock-go/penstock/algorithms"
)

var rule = Rule{Denials: 3, Within: time.Minute, For: time.Minute, Max: 4 * time.Minute}

// bannedFor returns how long a key is banned.
func bannedFor(t *testing.T, b *Bans, l algorithms.Limiter) time.Duration {
	t.Helper()
	checks := make([]algorithms.Check, 1)
	b.Check(&checks[0], "usr=1")
	if err := l.Allow(t.Context(), checks); err != nil {
		t.Fatal(err)
	}
	if d := &checks[0].Decision; !d.Allowed {
		return d.RetryAfter
	}
	return 0
}

// TestStrikes: the last denial that fits bans the key, each further ban lasts twice as long up to Max, and Lifts forgets
// all.
func TestStrikes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, l := New("p", rule), algorithms.NewMemory(nil)
		strikes := func(want time.Duration) {
			t.Helper()
			for i := range rule.Denials {
				banned, err := b.Strike(t.Context(), l, "usr=1")
				if last := i == rule.Denials-1; err != nil || (banned > 0) != last || last && banned != want {
					t.Fatalf("denial %d: got a ban of %v, %v, want %v after the last", i+1, banned, err, want)
				}
			}
			if got := bannedFor(t, b, l); got != want {
				t.Errorf("got %v left, want %v", got, want)
			}
			time.Sleep(want)
			if got := bannedFor(t, b, l); got != 0 {
				t.Errorf("got %v left after the ban, want none", got)
			}
		}
		for _, want := range []time.Duration{time.Minute, 2 * time.Minute, 4 * time.Minute, 4 * time.Minute} {
			strikes(want)
		}
		if err := l.Allow(t.Context(), b.Lifts("usr=1")); err != nil {
			t.Fatal(err)
		}
		strikes(time.Minute)
	})
}

// TestUndecidedStrikes: without the limiter's answer no key is banned.
func TestUndecidedStrikes(t *testing.T) {
	passes := limiterFunc(func(_ context.Context, checks []algorithms.Check) error {
		for i := range checks {
			checks[i].Decision = algorithms.Decision{Allowed: true}
		}
		return nil
	})
	for range 10 {
		if banned, err := New("p", rule).Strike(t.Context(), passes, "usr=1"); banned != 0 || err != nil {
			t.Errorf("got a ban of %v, %v, want none", banned, err)
		}
	}
}

type limiterFunc func(context.Context, []algorithms.Check) error

func (f limiterFunc) Allow(ctx context.Context, checks []algorithms.Check) error {
	return f(ctx, checks)
}

// TestRulesAreValidated: all mistakes are reported at once.
func TestRulesAreValidated(t *testing.T) {
	if err := rule.Validate(); err != nil {
		t.Error(err)
	}
	bad := Rule{Denials: 0, For: time.Millisecond, Max: time.Millisecond}
	if err := bad.Validate(); err == nil || strings.Count(err.Error(), "\n") != 2 {
		t.Errorf("got %v, want three lines", err)
	}
}
