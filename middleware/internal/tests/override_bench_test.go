package tests

import (
	"fmt"
	"testing"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/middleware"
	"github.com/penstock-go/penstock/middleware/overrides"
)

// tenThousand returns as many overrides of policy ip, one of them for
// 192.0.2.1.
func tenThousand(t testing.TB) *overrides.Memory {
	table := overrides.NewMemory()
	for i := range 10_000 {
		limit := algorithms.TokenBucket(1e9, time.Second).WithBurst(int64(1e8 + i%50))
		override(t, table, "ip", fmt.Sprintf("ip=192.0.%d.%d", 2+i/256, i%256), ratelimit.Override{Limit: limit})
	}
	return table
}

func BenchmarkOverrides(b *testing.B) {
	table := tenThousand(b)
	for _, bb := range []struct {
		name, ip string
		table    ratelimit.Overrides
	}{
		{"none", "192.0.2.1", nil},
		{"miss", "198.51.100.1", table},
		{"hit", "192.0.2.1", table},
	} {
		b.Run(bb.name, func(b *testing.B) {
			plenty := algorithms.TokenBucket(1e9, time.Second)
			m := newMiddleware(b, newMemory(b), &ratelimit.Options{Overrides: bb.table}, byIP("ip", plenty))
			r := from(bb.ip)
			b.ReportAllocs()
			for b.Loop() {
				if v, err := m.Check(r); err != nil || !v.Allowed {
					b.Fatal(v, err)
				}
			}
		})
	}
}

// Looking overrides up, and obeying one, allocates nothing.
func TestOverridesAllocateNothing(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector makes pools forget")
	}
	table, allocations := tenThousand(t), map[string]float64{}
	for name, o := range map[string]*ratelimit.Options{
		"none": {}, "192.0.2.1": {Overrides: table}, "192.0.30.7": {Overrides: table}, "198.51.100.1": {Overrides: table},
	} {
		m, r := newMiddleware(t, newMemory(t), o, byIP("ip", algorithms.TokenBucket(1e9, time.Second))), from("192.0.2.1")
		if name != "none" {
			r = from(name)
		}
		allocations[name] = testing.AllocsPerRun(1000, func() { _, _ = m.Check(r) })
	}
	for name, got := range allocations {
		if got != allocations["none"] {
			t.Errorf("%s: got %v allocations, want %v", name, got, allocations["none"])
		}
	}
}
