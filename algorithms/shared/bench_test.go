// What a take costs: from Redis, and if its denial is remembered. And how long calls wait for the ledger.

package shared

import (
	"context"
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
			cache := newViews(1_000, 0, nil)
			cache.next = newStateStore()
			benchmarkCall(b, &Limiter{top: cache, views: cache}, checks...)
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

// BenchmarkLedgerWaits: calls of an outage wait while the ledger is looked through for debts to send, of which there
// are none yet.
func BenchmarkLedgerWaits(b *testing.B) {
	l, limit := newLedger(nil), algorithms.TokenBucket(60, time.Minute)
	later := time.Now().Add(time.Hour)
	for i := range maxOwed {
		key := step.Key{Text: "usr=" + strconv.Itoa(i)}
		l.debts[key] = &debt{key: key, whole: *limit.Step(), counts: *limit.Step(), after: later}
	}
	for b.Loop() {
		l.popDebts(someInstant)
	}
}
