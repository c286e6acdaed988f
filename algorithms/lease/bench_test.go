// What a take from a lease costs, and what leases add to other takes.

package lease

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/algorithms/internal/step"
)

var benchKeys = func() (keys [1 << 10]string) {
	for i := range keys {
		keys[i] = "usr=" + strconv.Itoa(i)
	}
	return keys
}()

func BenchmarkAllow(b *testing.B) {
	for _, bb := range []struct {
		name    string
		wrapped algorithms.Limiter
		keys    int
		beside  int // takes of cold keys in each call
	}{
		{"hot", sharedMemory{algorithms.NewMemory(nil)}, 1, 0},
		{"cold", instantly{}, len(benchKeys), 0},
		{"hot-beside-cold", sharedMemory{algorithms.NewMemory(nil)}, 1, 1},
	} {
		b.Run(bb.name, func(b *testing.B) {
			l, err := New(bb.wrapped, &Options{HotAt: 50_000})
			if err != nil {
				b.Fatal(err)
			}
			limit := algorithms.TokenBucket(1_000_000_000, time.Second)
			checks := []algorithms.Check{{Policy: "orders", Limit: limit, Cost: 1}}
			for range bb.beside {
				checks = append(checks, algorithms.Check{Policy: "cold", Limit: limit, Cost: 1, Exact: true})
			}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				for j := range checks {
					checks[j].Key = benchKeys[i%bb.keys]
				}
				if err := l.Allow(context.Background(), checks); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(l.Stats().Lease.Spent)/float64(b.N), "leased/op")
			if err := l.Close(); err != nil {
				b.Fatal(err)
			}
		})
	}
}

// sharedMemory is a Memory that answers as the limiter that all instances share.
// It is faster than a fake.
type sharedMemory struct{ *algorithms.Memory }

func (m sharedMemory) Allow(ctx context.Context, checks []algorithms.Check) error {
	err := m.Memory.Allow(ctx, checks)
	for i := range checks {
		checks[i].Decision.Source = algorithms.Shared
	}
	return err
}

// instantly is a limiter that admits everything, and says that so many units
// remain.
type instantly struct{ remaining int64 }

func (l instantly) Allow(_ context.Context, checks []algorithms.Check) error {
	for i := range checks {
		c := &checks[i]
		r := step.Receipt{Units: c.Cost, Row: c.Limit.Step().Row, Source: uint8(algorithms.Shared)}
		c.Decision = algorithms.Decision{
			Allowed: true, Source: algorithms.Shared, Remaining: l.remaining, Receipt: algorithms.ReceiptOf(r),
		}
	}
	return nil
}

func TestLeasedTakesDoNotAllocate(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	l, err := New(instantly{remaining: 1_000_000_000}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	limit := algorithms.TokenBucket(1_000_000_000, time.Second)
	checks := []algorithms.Check{
		{Policy: "orders", Key: "usr=1", Limit: limit, Cost: 1}, {Policy: "all", Key: "usr=1", Limit: limit, Cost: 1},
	}
	ask := func() {
		if err := l.Allow(context.Background(), checks); err != nil {
			t.Fatal(err)
		}
	}
	for l.Stats().Lease.Spent < 10_000 {
		ask()
	}
	if got := testing.AllocsPerRun(10_000, ask); got != 0 {
		t.Errorf("got %v allocations per call, want none", got)
	}
}
