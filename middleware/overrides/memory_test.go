// Overrides of this process alone.

package overrides_test

import (
	"errors"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	ratelimit "github.com/penstock-go/penstock/middleware"
	"github.com/penstock-go/penstock/middleware/overrides"
)

// Ended overrides make room for others. Without them, a full table refuses new keys.
func TestMemoryIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := overrides.NewMemory()
		for i := range overrides.MaxPerPolicy {
			o := ratelimit.Override{Mode: ratelimit.ModeOff}
			if i%2 == 0 {
				o.Until = time.Now().Add(time.Minute)
			}
			set(t, m, "p", "usr="+strconv.Itoa(i), o)
		}
		if err := m.Set(ctx, "p", "usr=new", ratelimit.Override{}); !errors.Is(err, overrides.ErrFull) {
			t.Fatalf("got error %v, want ErrFull", err)
		}
		set(t, m, "p", "usr=1", ratelimit.Override{}) // a key of the table
		set(t, m, "q", "usr=new", ratelimit.Override{})
		time.Sleep(time.Minute)
		set(t, m, "p", "usr=new", ratelimit.Override{})
		if all, err := m.List(ctx, "p"); err != nil || len(all) != overrides.MaxPerPolicy/2+1 {
			t.Errorf("got %d, error %v, want %d", len(all), err, overrides.MaxPerPolicy/2+1)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		m := overrides.NewMemory()
		for i := range overrides.MaxPolicies {
			set(t, m, "p"+strconv.Itoa(i), "usr=1", ratelimit.Override{Mode: ratelimit.ModeBanned, Until: time.Now().Add(time.Minute)})
		}
		if err := m.Set(ctx, "one-more", "usr=1", ratelimit.Override{}); !errors.Is(err, overrides.ErrFull) {
			t.Errorf("got error %v, want ErrFull", err)
		}
		time.Sleep(time.Minute)
		set(t, m, "one-more", "usr=1", ratelimit.Override{})
		wantFound(t, m, "one-more", "usr=1", ratelimit.Override{})
	})
}

// Readers see each edit as a whole.
func TestMemoryConcurrently(t *testing.T) {
	m := overrides.NewMemory()
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			for n := range 500 {
				key := fmt.Sprintf("usr=%d.%d", i, n)
				set(t, m, "p", key, ratelimit.Override{Limit: hourly})
				wantFound(t, m, "p", key, ratelimit.Override{Limit: hourly})
				m.Find("p", "usr=0.1")
				if n%2 == 0 {
					_ = m.Clear(ctx, "p", key)
				}
			}
		})
	}
	wg.Wait()
	if all, err := m.List(ctx, "p"); err != nil || len(all) != 1000 {
		t.Errorf("got %d, error %v, want 1000", len(all), err)
	}
}

func BenchmarkFind(b *testing.B) {
	m := overrides.NewMemory()
	keys := make([]string, 10_000)
	for i := range keys {
		keys[i] = fmt.Sprintf("usr=%d|rt=GET /v1/orders/{id}", i)
		o := ratelimit.Override{Limit: hourly}
		if i%2 == 0 {
			o.Until = time.Now().Add(time.Hour)
		}
		if err := m.Set(ctx, "p", keys[i], o); err != nil {
			b.Fatal(err)
		}
	}
	for _, bb := range []struct {
		name, policy string
		key          func(i int) string
	}{
		{"hit", "p", func(i int) string { return keys[i%len(keys)|1] }},
		{"hit with until", "p", func(i int) string { return keys[i%len(keys)&^1] }},
		{"miss", "p", func(int) string { return "usr=unknown" }},
		{"policy without", "q", func(int) string { return "usr=unknown" }},
	} {
		b.Run(bb.name, func(b *testing.B) {
			b.ReportAllocs()
			for i := 0; b.Loop(); i += 7919 {
				m.Find(bb.policy, bb.key(i))
			}
		})
	}
}
