// How much memory does a key take?

package main

import (
	"context"
	"errors"
	"runtime"
	"time"
)

var keyMeasures = []measure{{
	name:    "redis-bytes",
	title:   "Redis, memory of 100 000 keys, each asked for once",
	plan:    plan{keys: 100_000, quota: perDay},
	once:    true,
	figures: []figure{bytesPerKey},
	contestants: []contestant{
		{us, stored(onRedis)},
		{"redis_rate", stored(redisRate())},
		{"rueidis", stored(viaRueidis)},
		{"ulule/limiter", stored(ululeRedis)},
	},
	why: "ulule/limiter keeps a count that expires with its fixed window. A bucket also needs the instant of its state.",
}, {
	name:    "memory-bytes",
	title:   "Memory, heap of 1 000 000 keys, each asked for once",
	plan:    plan{keys: 1_000_000, quota: perDay},
	once:    true,
	figures: []figure{bytesPerKey},
	contestants: []contestant{
		{us, held(inMemory)},
		{"go-limiter", held(goLimiterMemory)},
		{"ulule/limiter", held(ululeMemory)},
		{"x/time/rate in a map", held(xTimeRate)},
	},
}}

// fillers is how many goroutines make keys where time is not measured.
const fillers = 32

// stored measures the memory of a key in Redis, its name and TTL included. It uses
// each of the plan's keys once, on a server of its own.
func stored(set setup) start {
	return func(ctx context.Context, s *stage, p plan) (round, error) {
		return func(ctx context.Context) (sample, error) {
			server, err := startServer()
			if err != nil {
				return nil, err
			}
			defer server.Close()
			own := &stage{server: server, quick: s.quick}
			defer own.close()
			before, err := server.number(ctx, "memory", "used_memory")
			if err != nil {
				return nil, err
			}
			p.callers, p.onServer = fillers, true
			takes, err := set.proven(ctx, own, p)
			if err != nil {
				return nil, err
			}
			if err := newLoad(p, takes).fill(ctx); err != nil {
				return nil, err
			}
			own.close() // connections have buffers
			after, err := settled(ctx, server)
			return sample{bytesPerKey: (after - before) / float64(p.keys)}, err
		}, nil
	}
}

// settled returns the memory in use when only our own connection is left.
func settled(ctx context.Context, s *server) (float64, error) {
	for range 1000 {
		clients, err := s.number(ctx, "clients", "connected_clients")
		if err != nil {
			return 0, err
		}
		if clients == 1 {
			return s.number(ctx, "memory", "used_memory")
		}
		time.Sleep(2 * time.Millisecond)
	}
	return 0, errors.New("a contestant does not close its connections")
}

// held measures the memory of a key on the heap. Each name is made for its check, as
// names in requests are, so a contestant that keeps the name pays for it.
func held(set setup) start {
	return func(ctx context.Context, s *stage, p plan) (round, error) {
		return func(ctx context.Context) (sample, error) {
			own := &stage{server: s.server, quick: s.quick}
			defer own.close()
			takes, err := set.proven(ctx, own, p)
			if err != nil {
				return nil, err
			}
			ask, before := takes(), heapInUse()
			for i := range p.keys {
				if _, err := ask(ctx, userKey(i)); err != nil {
					return nil, err
				}
			}
			after := heapInUse()
			runtime.KeepAlive(ask)
			return sample{bytesPerKey: float64(after-before) / float64(p.keys)}, ctx.Err()
		}, nil
	}
}

func heapInUse() int64 {
	var stats runtime.MemStats
	runtime.GC()
	runtime.GC() // frees memory that finalizers and pools kept
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}
