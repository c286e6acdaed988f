package main

import (
	"cmp"
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/penstock-go/penstock/internal/lab/nottest"
)

// loaded measures a limiter under a closed loop: each caller asks, waits for
// the answer, and asks again at once, for a random key.
func loaded(set setup) start {
	return func(ctx context.Context, s *stage, p plan) round { return newLoad(p, set.proven(ctx, s, p)).round(s) }
}

// round returns a function that measures one round.
func (l *load) round(s *stage) round {
	return func(ctx context.Context) sample {
		if l.plan.onServer {
			nottest.Check(s.server.Client().FlushAll(ctx).Err())
		}
		if l.plan.warmUp > 0 {
			l.loop(ctx, l.plan.warmUp)
		} else {
			l.fill(ctx)
		}
		return l.measure(ctx, s)
	}
}

// A load is the callers of one contestant.
type load struct {
	plan    plan
	keys    []string
	callers []*caller
}

type caller struct {
	ask       take
	random    *rand.Rand
	latencies []uint32 // ns
	checks    int
	failed    int
	err       error    // of the latest check that failed
	_         [64]byte // keeps the counts of two callers apart
}

func newLoad(p plan, takes func() take) *load {
	l := &load{plan: p, keys: p.keyNames(p.keys)}
	for i := range p.callers {
		c := &caller{ask: takes(), random: rand.New(rand.NewPCG(uint64(i), 7))}
		if p.sampled {
			// Room for two million checks per second, so that append seldom grows it.
			c.latencies = make([]uint32, 0, 1024+int(p.lasts.Seconds()*2e6)/p.callers)
		}
		l.callers = append(l.callers, c)
	}
	return l
}

func (p plan) keyNames(n int) []string {
	key := p.key
	if key == nil {
		key = userKey
	}
	names := make([]string, n)
	for i := range names {
		names[i] = key(i)
	}
	return names
}

func userKey(i int) string { return "usr=" + strconv.Itoa(100_000_000+i) }

// fill uses a copy of every key once, so that connections, scripts and states exist.
// Services make the text of a key for each request, and Go's maps do not read a text at
// the address of their own. So no limiter may keep the text that measured checks pass.
func (l *load) fill(ctx context.Context) {
	var group sync.WaitGroup
	errs := make([]error, len(l.callers))
	for i, c := range l.callers {
		group.Go(func() {
			for j := i; j < len(l.keys) && errs[i] == nil; j += len(l.callers) {
				_, errs[i] = c.ask(ctx, strings.Clone(l.keys[j]))
			}
		})
	}
	group.Wait()
	nottest.Check(errors.Join(append(errs, ctx.Err())...))
}

func (l *load) measure(ctx context.Context, s *stage) sample {
	before := s.usage(ctx, l.plan.onServer)
	elapsed := l.loop(ctx, l.plan.lasts)
	after := s.usage(ctx, l.plan.onServer)
	checks, failed, err := 0, 0, error(nil)
	for _, c := range l.callers {
		checks, failed = checks+c.checks, failed+c.failed
		err = cmp.Or(err, c.err)
	}
	if failed*100 > checks {
		s.Fatalf("%d of %d checks failed: %w", failed, checks, err)
	}
	nottest.Check(decidedRight(checks, after.elsewhere-before.elsewhere))
	n := float64(max(checks, 1))
	got := sample{
		checksPerSecond: float64(checks-failed) / elapsed.Seconds(),
		perCheck:        float64(elapsed.Nanoseconds()) / n,
		// Rounded down, as package testing does: rarer allocations come from the
		// runtime or from other goroutines.
		allocations:   math.Floor(float64(after.mallocs-before.mallocs) / n),
		bytesPerCheck: float64(after.bytes-before.bytes) / n,
		serverCPU:     (after.server - before.server) / n,
	}
	l.quantiles(got)
	nottest.Check(ctx.Err())
	return got
}

// loop runs all callers for the given time, and returns the time that it took.
func (l *load) loop(ctx context.Context, lasts time.Duration) time.Duration {
	var group sync.WaitGroup
	var stop atomic.Bool
	begin := time.Now()
	for _, c := range l.callers {
		c.checks, c.failed, c.err, c.latencies = 0, 0, nil, c.latencies[:0]
		group.Go(func() {
			if l.plan.sampled {
				c.sampled(ctx, l.keys, &stop)
			} else {
				c.counted(ctx, l.keys, &stop)
			}
		})
	}
	timer := time.AfterFunc(lasts, func() { stop.Store(true) })
	defer timer.Stop()
	group.Wait()
	return time.Since(begin)
}

// counted reads no clock per check: that would cost as much as a check in memory.
func (c *caller) counted(ctx context.Context, keys []string, stop *atomic.Bool) {
	for ok := true; ok; ok = !stop.Load() && ctx.Err() == nil {
		for range 64 {
			c.check(ctx, keys)
		}
	}
}

func (c *caller) sampled(ctx context.Context, keys []string, stop *atomic.Bool) {
	for ok := true; ok; ok = !stop.Load() && ctx.Err() == nil {
		begin := time.Now()
		c.check(ctx, keys)
		c.latencies = append(c.latencies, uint32(min(time.Since(begin), math.MaxUint32)))
	}
}

func (c *caller) check(ctx context.Context, keys []string) {
	if _, err := c.ask(ctx, keys[c.random.IntN(len(keys))]); err != nil {
		c.failed++
		c.err = err
	}
	c.checks++
}

// leastBeyond is how many checks must take longer than a quantile.
const leastBeyond = 3

func (l *load) quantiles(got sample) {
	var all []uint32
	for _, c := range l.callers {
		all = append(all, c.latencies...)
	}
	if len(all) == 0 {
		return
	}
	slices.Sort(all)
	for f, perMille := range map[figure]int{p50: 500, p99: 990} {
		// The p99 of a hundred checks would be a single check.
		if beyond := len(all) * (1000 - perMille) / 1000; beyond >= leastBeyond || f == p50 {
			got[f] = float64(all[len(all)*perMille/1000]) / 1e3
		}
	}
}
