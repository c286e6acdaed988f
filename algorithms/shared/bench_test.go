// What a take costs: from Redis, from a lease, and if its denial is remembered.

package shared

import (
	"context"
	"log/slog"
	"strconv"
	"testing"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/algorithms/internal/step"
	"github.com/penstock-go/penstock/internal/redistest"
)

// plenty returns limits that admit everything a benchmark asks for.
func plenty() []algorithms.Limit {
	return []algorithms.Limit{
		algorithms.TokenBucket(1_000_000_000, time.Second),
		algorithms.LeakyBucket(1_000_000_000, time.Second),
		algorithms.SlidingWindowCounter(1_000_000_000, time.Second),
		algorithms.SlidingWindowLog(10_000, time.Millisecond),
		algorithms.FixedWindow(1_000_000_000, time.Second),
	}
}

var benchKeys = func() (keys [1 << 10]string) {
	for i := range keys {
		keys[i] = "usr=" + strconv.Itoa(i)
	}
	return keys
}()

func BenchmarkRedis(b *testing.B) {
	l := newRedis(b, redistest.Start(b).Client(), nil)
	for _, limit := range plenty() {
		b.Run(limit.Algorithm().String(), func(b *testing.B) {
			benchmarkCall(b, l, algorithms.Check{Policy: "orders", Key: "usr=42", Limit: limit, Cost: 1})
		})
	}
}

// Many callers at once share scripts.
func BenchmarkRedisParallel(b *testing.B) {
	l := newRedis(b, redistest.Start(b).Client(), nil)
	limit := algorithms.TokenBucket(1_000_000_000, time.Second)
	b.SetParallelism(128) // times GOMAXPROCS
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		checks := []algorithms.Check{{Policy: "orders", Limit: limit, Cost: 1}}
		for i := 0; pb.Next(); i++ {
			checks[0].Key = benchKeys[i%len(benchKeys)]
			if err := l.Allow(context.Background(), checks); err != nil {
				b.Error(err)
				return
			}
		}
	})
	var s algorithms.Stats
	l.redis.addStats(&s)
	b.ReportMetric(float64(s.Redis.Checks)/float64(s.Redis.Scripts), "checks/script")
}

// A call whose denial is remembered.
func BenchmarkDenied(b *testing.B) {
	wide := algorithms.Check{Policy: "all", Key: "usr=42", Limit: algorithms.FixedWindow(1_000_000_000, 24*time.Hour), Cost: 1}
	narrow := algorithms.Check{Policy: "orders", Key: "usr=42|rt=GET%20/v1/orders", Limit: algorithms.FixedWindow(1, 24*time.Hour), Cost: 1}
	for name, checks := range map[string][]algorithms.Check{"one": {narrow}, "second-of-two": {wide, narrow}} {
		b.Run(name, func(b *testing.B) {
			cache := newDenyCache(limiterLayer{sharedMemory{algorithms.NewMemory(nil)}}, 1_000)
			benchmarkCall(b, &Limiter{top: cache, denied: cache}, checks...)
		})
	}
}

func benchmarkCall(b *testing.B, l *Limiter, checks ...algorithms.Check) {
	b.ReportAllocs()
	for b.Loop() {
		if err := l.Allow(context.Background(), checks); err != nil {
			b.Fatal(err)
		}
	}
}

// What a take from a lease costs, and what leases add to a take of a cold key.
func BenchmarkLease(b *testing.B) {
	for _, bb := range []struct {
		name string
		next layer
		keys int
	}{
		{"hot", limiterLayer{sharedMemory{algorithms.NewMemory(nil)}}, 1},
		{"cold", instantly{}, len(benchKeys)},
	} {
		b.Run(bb.name, func(b *testing.B) {
			options := LeaseOptions{HotAt: 50_000}.withDefaults()
			ls := newLease(bb.next, &options, newReport(slog.Default()))
			go ls.watch()
			l := over(ls)
			checks := []algorithms.Check{{Policy: "orders", Limit: algorithms.TokenBucket(1_000_000_000, time.Second), Cost: 1}}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				checks[0].Key = benchKeys[i%bb.keys]
				if err := l.Allow(context.Background(), checks); err != nil {
					b.Fatal(err)
				}
			}
			var s algorithms.Stats
			ls.addStats(&s)
			b.ReportMetric(float64(s.Lease.Spent)/float64(b.N), "leased/op")
			if err := ls.close(); err != nil {
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

// instantly is a layer that admits everything, and says that so many units remain.
type instantly struct{ remaining int64 }

func (l instantly) allow(_ context.Context, c *call) error {
	for i := range c.items {
		it := &c.items[i]
		r := step.Receipt{Units: it.Cost, Row: it.Limit.Row, Source: uint8(algorithms.Shared)}
		it.decision = algorithms.Decision{
			Allowed: true, Source: algorithms.Shared, Remaining: l.remaining, Receipt: algorithms.ReceiptOf(r),
		}
	}
	return nil
}

func TestLeasedTakesDoNotAllocate(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	options := LeaseOptions{}.withDefaults()
	ls := newLease(instantly{remaining: 1_000_000_000}, &options, newReport(slog.Default()))
	go ls.watch()
	defer ls.close()
	l := over(ls)
	limit := algorithms.TokenBucket(1_000_000_000, time.Second)
	checks := []algorithms.Check{
		{Policy: "orders", Key: "usr=1", Limit: limit, Cost: 1}, {Policy: "all", Key: "usr=1", Limit: limit, Cost: 1},
	}
	ask := func() {
		if err := l.Allow(context.Background(), checks); err != nil {
			t.Fatal(err)
		}
	}
	spent := func() uint64 {
		var s algorithms.Stats
		ls.addStats(&s)
		return s.Lease.Spent
	}
	for spent() < 10_000 {
		ask()
	}
	if got := testing.AllocsPerRun(10_000, ask); got != 0 {
		t.Errorf("got %v allocations per call, want none", got)
	}
}
