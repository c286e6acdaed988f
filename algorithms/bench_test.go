package algorithms_test

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/internal/redistest"
)

// plenty admits whatever a benchmark asks.
func plenty() []algorithms.Limit {
	return []algorithms.Limit{
		algorithms.TokenBucket(1_000_000_000, time.Second),
		algorithms.LeakyBucket(1_000_000_000, time.Second),
		algorithms.SlidingWindowCounter(1_000_000_000, time.Second),
		algorithms.SlidingWindowLog(10_000, time.Millisecond),
		algorithms.FixedWindow(1_000_000_000, time.Second),
	}
}

func BenchmarkMemory(b *testing.B) {
	for _, limit := range plenty() {
		b.Run(limit.Algorithm().String(), func(b *testing.B) {
			benchmarkKeys(b, algorithms.Must(algorithms.NewMemory(nil)), limit, 10_000)
		})
	}
	for _, keys := range []int{1_000, 1_000_000} {
		b.Run("keys-"+strconv.Itoa(keys), func(b *testing.B) {
			// Slow enough that no key expires.
			limit := algorithms.TokenBucket(1_000_000_000, time.Hour)
			benchmarkKeys(b, algorithms.Must(algorithms.NewMemory(&algorithms.MemoryOptions{MaxKeys: 2_000_000})), limit, keys)
		})
	}
}

func benchmarkKeys(b *testing.B, m *algorithms.Memory, limit algorithms.Limit, keys int) {
	defer m.Close()
	names := make([]string, keys)
	for i := range names {
		names[i] = "ip=10.0." + strconv.Itoa(i) + "|rt=GET%20/v1/orders"
	}
	checks := []algorithms.Check{{Policy: "orders", Limit: limit, Cost: 1}}
	ctx := context.Background()
	for _, name := range names {
		checks[0].Key = name
		if err := m.Allow(ctx, checks); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		checks[0].Key = names[i%keys]
		if err := m.Allow(ctx, checks); err != nil {
			b.Fatal(err)
		}
		i++
	}
}

func BenchmarkMemoryParallel(b *testing.B) {
	m := algorithms.Must(algorithms.NewMemory(nil))
	defer m.Close()
	limit := algorithms.TokenBucket(1_000_000_000, time.Second)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		checks := []algorithms.Check{{Policy: "orders", Limit: limit, Cost: 1}}
		for i := 0; pb.Next(); i++ {
			checks[0].Key = names[i%len(names)]
			if err := m.Allow(context.Background(), checks); err != nil {
				b.Error(err)
				return
			}
		}
	})
}

var names = func() (names [1 << 10]string) {
	for i := range names {
		names[i] = "usr=" + strconv.Itoa(i)
	}
	return names
}()

func BenchmarkRedis(b *testing.B) {
	server := redistest.Start(b)
	r := algorithms.Must(algorithms.NewRedis(server.Client(), nil))
	for _, limit := range plenty() {
		b.Run(limit.Algorithm().String(), func(b *testing.B) {
			checks := []algorithms.Check{{Policy: "orders", Key: "usr=42", Limit: limit, Cost: 1}}
			b.ReportAllocs()
			for b.Loop() {
				if err := r.Allow(context.Background(), checks); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// Many callers at once share scripts.
func BenchmarkRedisParallel(b *testing.B) {
	server := redistest.Start(b)
	r := algorithms.Must(algorithms.NewRedis(server.Client(), nil))
	limit := algorithms.TokenBucket(1_000_000_000, time.Second)
	b.SetParallelism(128) // times GOMAXPROCS
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		checks := []algorithms.Check{{Policy: "orders", Limit: limit, Cost: 1}}
		for i := 0; pb.Next(); i++ {
			checks[0].Key = names[i%len(names)]
			if err := r.Allow(context.Background(), checks); err != nil {
				b.Error(err)
				return
			}
		}
	})
	stats := r.Stats()
	b.ReportMetric(float64(stats.Checks)/float64(stats.Scripts), "checks/script")
}

func BenchmarkDenied(b *testing.B) {
	cache, _ := algorithms.NewDenyCacheForTest(&shared{Memory: algorithms.Must(algorithms.NewMemory(nil)), source: algorithms.Shared}, 1_000)
	checks := []algorithms.Check{{Policy: "orders", Key: "usr=42|rt=GET%20/v1/orders", Limit: algorithms.FixedWindow(1, 24*time.Hour), Cost: 1}}
	b.ReportAllocs()
	for b.Loop() {
		if err := cache.Allow(context.Background(), checks); err != nil {
			b.Fatal(err)
		}
	}
}
