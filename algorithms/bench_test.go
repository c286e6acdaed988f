// What a take from a Memory costs.

package algorithms_test

import (
	"context"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/penstock-go/penstock/algorithms"
)

func BenchmarkMemory(b *testing.B) {
	for _, limit := range plenty() {
		b.Run(limit.Algorithm().String(), func(b *testing.B) {
			benchmarkKeys(b, algorithms.NewMemory(nil), limit, 10_000)
		})
	}
	for _, keys := range []int{1_000, 1_000_000} {
		b.Run("keys-"+strconv.Itoa(keys), func(b *testing.B) {
			limit := algorithms.TokenBucket(1_000_000_000, time.Hour) // so slow that no key expires
			benchmarkKeys(b, algorithms.NewMemory(&algorithms.MemoryOptions{MaxKeys: 2_000_000}), limit, keys)
		})
	}
}

func benchmarkKeys(b *testing.B, m *algorithms.Memory, limit algorithms.Limit, keys int) {
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

func BenchmarkAllow(b *testing.B) {
	m, limit, ctx := algorithms.NewMemory(nil), algorithms.TokenBucket(1_000_000_000, time.Second), context.Background()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := algorithms.Allow(ctx, m, "usr=1", limit); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkMemoryCalls(b *testing.B) {
	for _, n := range []int{1, 2, 3, 4} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			m, limit, ctx := algorithms.NewMemory(nil), algorithms.TokenBucket(1_000_000_000, time.Second), context.Background()
			checks := make([]algorithms.Check, n)
			for i := range checks {
				checks[i] = algorithms.Check{Policy: "orders", Key: "usr=" + strconv.Itoa(i), Limit: limit, Cost: 1}
			}
			b.ReportAllocs()
			for b.Loop() {
				if err := m.Allow(ctx, checks); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkMemoryPolicies: the calls of a service with a limit by client, by client and route, and for all. The clients
// come in random order, so look-ups miss the processor's caches.
func BenchmarkMemoryPolicies(b *testing.B) {
	const clients = 10_000
	m, limit, ctx := algorithms.NewMemory(nil), algorithms.TokenBucket(1_000_000_000, time.Hour), context.Background()
	var names, routes [clients]string
	for i := range names {
		names[i] = "hdr.x-merchant=10.0.0." + strconv.Itoa(i)
		routes[i] = names[i] + "|rt=POST%20/v1/charges"
	}
	for _, n := range []int{1, 2, 3} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			checks := []algorithms.Check{
				{Policy: "merchant", Limit: limit, Cost: 1},
				{Policy: "endpoint", Limit: limit, Cost: 1},
				{Policy: "global", Limit: limit, Cost: 1, Key: "const=all"},
			}[:n]
			random := rand.New(rand.NewPCG(1, 2))
			for b.Loop() {
				i := random.IntN(clients)
				checks[0].Key = names[i]
				if n > 1 {
					checks[1].Key = routes[i]
				}
				if err := m.Allow(ctx, checks); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkMemoryParallel(b *testing.B) {
	m := algorithms.NewMemory(nil)
	limit := algorithms.TokenBucket(1_000_000_000, time.Second)
	var names [1 << 10]string
	for i := range names {
		names[i] = "usr=" + strconv.Itoa(i)
	}
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
