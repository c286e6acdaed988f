package main

import (
	"context"
	"errors"
	"runtime"
	"time"
)

// fillers is how many goroutines make keys where time is not measured.
const fillers = 32

// stored measures the memory of a key in Redis, its name and TTL included. It uses
// each of the plan's keys so many times, on a server of its own.
func stored(set setup, times int) start {
	return func(ctx context.Context, s *stage, p plan) (round, error) {
		return func(ctx context.Context) (sample, error) {
			server, err := startServer()
			if err != nil {
				return nil, err
			}
			defer server.close()
			own := &stage{server: server, quick: s.quick}
			defer own.close()
			before, err := server.usedMemory(ctx)
			if err != nil {
				return nil, err
			}
			p.callers, p.onServer = fillers, true
			takes, err := set.proven(ctx, own, p)
			if err != nil {
				return nil, err
			}
			l := newLoad(p, takes)
			for range times {
				if err := l.fill(ctx); err != nil {
					return nil, err
				}
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
		clients, err := s.info(ctx, "clients", "connected_clients")
		if err != nil {
			return 0, err
		}
		if clients == "1" {
			return s.usedMemory(ctx)
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

// scaled measures a limiter in memory with one goroutine, then with two.
func scaled(set setup) start {
	return versus(set, speedup, plan{callers: 1}, plan{callers: 2}, func(one, two sample) float64 {
		return two[checksPerSecond] / one[checksPerSecond]
	})
}

// grown measures a limiter in memory with 1 000 keys, then with 1 000 000.
func grown(set setup) start {
	return versus(set, growth, plan{keys: 1_000}, plan{keys: 1_000_000}, func(few, many sample) float64 {
		return many[perCheck] / few[perCheck]
	})
}

// versus measures a limiter under two plans in turn, which differ in callers or
// keys, and compares the results.
func versus(set setup, f figure, a, b plan, compare func(a, b sample) float64) start {
	return func(ctx context.Context, s *stage, p plan) (round, error) {
		var rounds [2]round
		for i, way := range [2]plan{a, b} {
			q := p
			q.callers, q.keys = max(q.callers, way.callers), max(q.keys, way.keys)
			var err error
			if rounds[i], err = loaded(set)(ctx, s, q.in(s)); err != nil {
				return nil, err
			}
		}
		return func(ctx context.Context) (sample, error) {
			first, err := rounds[0](ctx)
			if err != nil {
				return nil, err
			}
			second, err := rounds[1](ctx)
			return sample{f: compare(first, second), perCheck: second[perCheck]}, err
		}, nil
	}
}
