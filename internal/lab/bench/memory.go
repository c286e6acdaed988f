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

func goLimiterStore(s *stage, q quota) (limiter.Store, error) {
	store, err := memorystore.New(&memorystore.Config{Tokens: uint64(q.requests), Interval: q.window})
	if err != nil {
		return nil, err
	}
	s.onClose(func() { _ = store.Close(context.Background()) })
	return store, nil
}

func goLimiterMemory(_ context.Context, s *stage, q quota) (func() take, error) {
	store, err := goLimiterStore(s, q)
	if err != nil {
		return nil, err
	}
	return sameTake(func(ctx context.Context, key string) (bool, error) {
		_, _, _, ok, err := store.Take(ctx, key)
		return ok, err
	}), nil
}

func ululeMemory(_ context.Context, _ *stage, q quota) (func() take, error) {
	return ululeTakes(ululememory.NewStore(), q), nil
}

// xTimeRate is golang.org/x/time/rate behind a map and a lock. Many services limit
// their clients that way. It never forgets a key.
func xTimeRate(_ context.Context, _ *stage, q quota) (func() take, error) {
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
	}), nil
}
