// How much memory does a key take?

package main

import (
	"context"
	"runtime"
	"time"

	"github.com/penstock-go/penstock/internal/lab/command"
	"github.com/penstock-go/penstock/internal/lab/nottest"
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
	return func(_ context.Context, _ *stage, p plan) round {
		return func(ctx context.Context) sample {
			server := startServer()
			defer server.Close()
			own := &stage{Owner: nottest.NewOwner(), server: server}
			defer own.Close()
			before := server.number(ctx, "memory", "used_memory")
			p.callers, p.onServer = fillers, true
			newLoad(p, set.proven(ctx, own, p)).fill(ctx)
			own.Close() // connections have buffers
			return sample{bytesPerKey: (settled(ctx, server) - before) / float64(p.keys)}
		}
	}
}

// settled returns the memory in use when only our own connection is left.
func settled(ctx context.Context, s *server) float64 {
	for range 1000 {
		if s.number(ctx, "clients", "connected_clients") == 1 {
			return s.number(ctx, "memory", "used_memory")
		}
		time.Sleep(2 * time.Millisecond)
	}
	s.Fatalf("a contestant does not close its connections")
	return 0
}

// held measures the memory of a key on the heap. Each name is made for its check, as
// names in requests are, so a contestant that keeps the name pays for it.
func held(set setup) start {
	return func(_ context.Context, s *stage, p plan) round {
		return func(ctx context.Context) sample {
			own := &stage{Owner: nottest.NewOwner(), server: s.server}
			defer own.Close()
			takes := set.proven(ctx, own, p)
			ask, before := takes(), command.Heap()
			for i := range p.keys {
				nottest.Must(ask(ctx, userKey(i)))
			}
			after := command.Heap()
			runtime.KeepAlive(ask)
			nottest.Check(ctx.Err())
			return sample{bytesPerKey: float64(after-before) / float64(p.keys)}
		}
	}
}
