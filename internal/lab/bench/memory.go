// What does a check in memory cost?

package main

import (
	"context"
	"sync"
	"time"

	limiter "github.com/sethvargo/go-limiter"
	"github.com/sethvargo/go-limiter/memorystore"
	ululememory "github.com/ulule/limiter/v3/drivers/store/memory"
	"golang.org/x/time/rate"

	"github.com/penstock-go/penstock/internal/lab/nottest"
)

var memoryMeasure = measure{
	name:    "memory",
	title:   "Memory, token bucket, one goroutine, 10 000 keys",
	plan:    plan{callers: 1, keys: 10_000, quota: perSecond, lasts: instant},
	times:   closeTimes,
	figures: []figure{perCheck, allocations},
	contestants: []contestant{
		{us, loaded(inMemory)},
		{"go-limiter", loaded(goLimiterMemory)},
		{"ulule/limiter", loaded(ululeMemory)},
		{"x/time/rate in a map", loaded(xTimeRate)},
	},
	most: map[figure]float64{allocations: 0},
	why: "A sixth of the time is the clock, a tenth the hash of the key, and a quarter the look-up, most of it cache misses. " +
		"Pointers to records would save time, and need more memory per key.",
}

func goLimiterStore(s *stage, q quota) limiter.Store {
	store := nottest.Must(memorystore.New(&memorystore.Config{Tokens: uint64(q.requests), Interval: q.window}))
	s.Cleanup(func() { _ = store.Close(context.Background()) })
	return store
}

func goLimiterMemory(_ context.Context, s *stage, q quota) func() take {
	store := goLimiterStore(s, q)
	return sameTake(func(ctx context.Context, key string) (bool, error) {
		_, _, _, ok, err := store.Take(ctx, key)
		return ok, err
	})
}

func ululeMemory(_ context.Context, _ *stage, q quota) func() take {
	return ululeTakes(ululememory.NewStore(), q)
}

// xTimeRate is golang.org/x/time/rate behind a map and a lock. Many services limit
// their clients that way. It never forgets a key.
func xTimeRate(_ context.Context, _ *stage, q quota) func() take {
	var mu sync.Mutex
	limiters := map[string]*rate.Limiter{}
	every := rate.Every(q.window / time.Duration(q.requests))
	return sameTake(func(_ context.Context, key string) (bool, error) {
		mu.Lock()
		l := limiters[key]
		if l == nil {
			l = rate.NewLimiter(every, int(q.requests))
			limiters[key] = l
		}
		mu.Unlock()
		return l.Allow(), nil
	})
}
