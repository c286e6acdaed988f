package main

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/algorithms/shared"
)

// batchesPerRound is how often a round sends a mix.
const batchesPerRound = 10

// A mix is a batch of checks, each of another caller.
type mix struct {
	ready  func(ctx context.Context, h *holder) error // makes the states that the checks find; nil: none
	checks func(h *holder) []algorithms.Check
}

// A holder measures how long a batch blocks Redis. The server's slow log has the time
// of each script. A locked gate delays one call. All other calls wait behind it, and
// then they travel in as few batches as the limiter allows.
type holder struct {
	server  *server
	limiter *shared.Limiter
	gate    *gate
	clock   atomic.Int64 // µs
	taken   []algorithms.Check
}

// A gate is a client that sends nothing while it is locked.
type gate struct {
	*redis.Client
	sync.RWMutex
}

func (g *gate) Process(ctx context.Context, cmd redis.Cmder) error {
	g.RLock()
	defer g.RUnlock()
	return g.Client.Process(ctx, cmd)
}

func holds(m mix) start {
	return func(ctx context.Context, s *stage, _ plan) (round, error) {
		h, err := newHolder(ctx, s)
		if err != nil {
			return nil, err
		}
		batches := batchesPerRound
		if s.quick {
			batches = 1
		}
		return func(ctx context.Context) (sample, error) {
			var micros []float64
			for range batches {
				if m.ready != nil {
					if err := m.ready(ctx, h); err != nil {
						return nil, err
					}
				}
				took, err := h.send(ctx, m.checks(h))
				if err != nil {
					return nil, err
				}
				micros = append(micros, took)
			}
			return sample{holdLongest: slices.Max(micros), holdTypical: median(micros)}, nil
		}, nil
	}
}

func newHolder(ctx context.Context, s *stage) (*holder, error) {
	server, err := startServer()
	if err != nil {
		return nil, err
	}
	s.onClose(server.close)
	if err := server.admin.ConfigSet(ctx, "slowlog-log-slower-than", "0").Err(); err != nil {
		return nil, err
	}
	own := &stage{server: server}
	s.onClose(own.close)
	h := &holder{server: server, gate: &gate{Client: own.client()}}
	h.clock.Store(time.Now().UnixMicro())
	h.limiter, err = newShared(own, h.gate, shared.Options{
		InFlight: 1,
		Now:      func() time.Time { return time.UnixMicro(h.clock.Load()) },
	})
	return h, err
}

// send lets all checks travel together, and returns the µs of the longest script.
func (h *holder) send(ctx context.Context, checks []algorithms.Check) (float64, error) {
	if err := h.server.admin.SlowLogReset(ctx).Err(); err != nil {
		return 0, err
	}
	before := h.limiter.Stats().Redis.Checks
	var group sync.WaitGroup
	var failure atomic.Pointer[error]
	ask := func(check algorithms.Check) {
		if err := h.limiter.Allow(ctx, []algorithms.Check{check}); err != nil {
			failure.Store(&err)
		}
	}
	h.gate.Lock()
	group.Go(func() { ask(o1(-1, algorithms.TokenBucket(1, time.Second))) }) // the call that the gate delays
	for _, check := range checks {
		group.Go(func() { ask(check) })
	}
	for h.limiter.Stats().Redis.Checks < before+uint64(1+len(checks)) {
		time.Sleep(100 * time.Microsecond)
	}
	time.Sleep(time.Millisecond) // a check is counted just before it is queued
	h.gate.Unlock()
	group.Wait()
	if err := failure.Load(); err != nil {
		return 0, *err
	}
	return h.longest(ctx)
}

func (h *holder) longest(ctx context.Context) (float64, error) {
	logs, err := h.server.admin.SlowLogGet(ctx, 128).Result()
	if err != nil {
		return 0, err
	}
	var longest time.Duration
	for _, l := range logs {
		if len(l.Args) > 0 && (l.Args[0] == "evalsha" || l.Args[0] == "eval") {
			longest = max(longest, l.Duration)
		}
	}
	return float64(longest.Microseconds()), nil
}

// fillLogs replaces all keys by n full logs with windows of a minute. Each log has
// that many entries, a tenth of them at each of ten instants. The oldest entry has
// the given cost, all others have cost 1. fillLogs keeps the first check of each log
// in taken.
func (h *holder) fillLogs(ctx context.Context, n, entries int, oldest int64) error {
	if err := h.server.flush(ctx); err != nil {
		return err
	}
	limit := algorithms.SlidingWindowLog(int64(entries)+oldest-1, time.Minute)
	h.taken = h.taken[:0]
	for left := entries; left > 0; left -= max(1, entries/10) {
		h.clock.Add(1)
		var checks []algorithms.Check
		for i := range n {
			checks = append(checks, slices.Repeat([]algorithms.Check{o1(i, limit)}, min(left, max(1, entries/10)))...)
		}
		if left == entries {
			for i := range n {
				checks[i*len(checks)/n].Cost = oldest
			}
		}
		if err := h.limiter.Allow(ctx, checks); err != nil {
			return err
		}
		if left == entries {
			for i := range n {
				h.taken = append(h.taken, checks[i*len(checks)/n])
			}
		}
	}
	return nil
}

// o1 takes one unit of the i-th key.
func o1(i int, limit algorithms.Limit) algorithms.Check {
	return algorithms.Check{Policy: "clients", Key: userKey(i), Limit: limit, Cost: 1}
}
