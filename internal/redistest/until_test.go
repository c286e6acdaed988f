package redistest

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestUntil waits for a condition that takes a while, in real and in virtual time.
func TestUntil(t *testing.T) {
	t.Parallel()
	wait := func(t *testing.T, d time.Duration) {
		start := time.Now()
		looks := 0
		Until(t, "some time has passed", func() bool { looks++; return time.Since(start) >= d })
		if took := time.Since(start); took < d {
			t.Errorf("returned after %v, want %v at least", took, d)
		}
		if most := int(d/longestPause) + 10; looks > most {
			t.Errorf("looked %d times in %v, want at most %d", looks, d, most)
		}
		UntilEmpty(t, "nothing is missing", func() string { return "" })
	}
	t.Run("real", func(t *testing.T) { wait(t, 5*time.Millisecond) })
	t.Run("virtual", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) { wait(t, Patience-time.Second) })
	})
}

// TestUntilGivesUp wants messages that name the condition and quote what is missing.
func TestUntilGivesUp(t *testing.T) {
	t.Parallel()
	for want, wait := range map[string]func(testing.TB){
		"waited 2m0s until pigs fly":           func(tb testing.TB) { Until(tb, "pigs fly", func() bool { return false }) },
		"waited 2m0s until pigs fly: no wings": func(tb testing.TB) { UntilEmpty(tb, "pigs fly", func() string { return "no wings" }) },
	} {
		synctest.Test(t, func(t *testing.T) {
			fake, start := &fatalTB{TB: t}, time.Now()
			done := make(chan struct{})
			go func() {
				defer close(done)
				wait(fake)
			}()
			<-done
			if !strings.HasSuffix(fake.message, want) {
				t.Errorf("got %q, want %q", fake.message, want)
			}
			if took := time.Since(start); took < Patience || took > Patience+time.Second {
				t.Errorf("gave up after %v, want %v", took, Patience)
			}
		})
	}
}
