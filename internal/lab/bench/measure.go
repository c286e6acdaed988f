// A measure: contestants that take turns, and what becomes of it.

package main

import (
	"context"
	"math"
	"runtime"
	"slices"
	"time"

	"github.com/penstock-go/penstock/internal/lab/nottest"
)

// A measure puts one question to several contestants, in alternating rounds.
type measure struct {
	name        string // for -only
	title       string // of its table; measures with the same title share a table
	at          string // what differs within the table, such as the number of callers
	plan        plan
	figures     []figure
	contestants []contestant
	once        bool               // the figures hardly vary: one round does
	times       int                // so many rounds instead of each round; 0: one
	long        bool               // a quick run leaves it out
	most        map[figure]float64 // a quick run fails if penstock's figure is larger
	why         string             // why a peer is better, where one is
}

// A plan says what a contestant does in a round.
type plan struct {
	callers  int // goroutines; each waits for its answer
	keys     int
	quota    quota
	lasts    time.Duration
	warmUp   time.Duration      // unmeasured, before each round; 0: use every key once instead
	key      func(i int) string // nil: usr=i
	sampled  bool               // measure the latency of every check
	onServer bool               // it uses the Redis server: delete keys before, measure its CPU
	network  network            // between the contestants and the server
}

// A quota is a limit that every contestant has: so many requests per window, and all
// of them may come at once.
type quota struct {
	requests int64
	window   time.Duration
}

// A figure is one kind of number that a round yields.
type figure struct {
	name, unit string
	more       bool // a larger number is better
}

// A sample holds the figures of one round.
type sample map[figure]float64

var (
	checksPerSecond = figure{"checks", "/s", true}
	perCheck        = figure{"time per check", "ns", false}
	p50             = figure{"median latency", "µs", false}
	p99             = figure{"p99 latency", "µs", false}
	bytesPerCheck   = figure{"bytes per check", "B", false}
	serverCPU       = figure{"Redis CPU per check", "µs", false}
	allocations     = figure{"allocations per check", "", false}
	bytesPerKey     = figure{"memory per key", "B", false}
)

// A contestant takes part in a measure.
type contestant struct {
	name  string
	start start
}

// A start sets a contestant up, and makes sure that it limits. Like a setup and a round, it ends the run if that fails.
type start func(ctx context.Context, s *stage, p plan) round

// A round measures a contestant once.
type round func(ctx context.Context) sample

// A take asks for one unit of key, and reports whether it was admitted.
type take func(ctx context.Context, key string) (bool, error)

// A setup makes a limiter of one quota. It returns a function that makes a take for
// each goroutine, with buffers of its own.
type setup func(ctx context.Context, s *stage, q quota) func() take

const us = "penstock"

func (m *measure) index(name string) int {
	return slices.IndexFunc(m.contestants, func(c contestant) bool { return c.name == name })
}

// run returns the samples of each contestant, by rounds.
func (m *measure) run(ctx context.Context, s *stage, rounds int) [][]sample {
	p := m.plan.in(s)
	steps := make([]round, len(m.contestants))
	for i, c := range m.contestants {
		m.do(s, c, func() { steps[i] = c.start(ctx, s, p) })
	}
	if m.once || s.quick {
		rounds = 1
	}
	rounds *= max(1, m.times)
	results := make([][]sample, len(steps))
	for n := range rounds {
		for j := range steps {
			// Each round begins with another contestant, so that none always has
			// the same position.
			i := (j + n) % len(steps)
			runtime.GC()
			m.do(s, m.contestants[i], func() { results[i] = append(results[i], steps[i](ctx)) })
		}
	}
	return results
}

// do calls f, and names the contestant that it fails for.
func (m *measure) do(s *stage, c contestant, f func()) {
	if err := s.Do(f); err != nil {
		s.Fatalf("%s: %s: %w", m.name, c.name, err)
	}
}

// in returns the plan for a stage, which is shorter on a quick one.
func (p plan) in(s *stage) plan {
	if s.quick {
		p.lasts = min(p.lasts, 10*time.Millisecond)
		if p.warmUp == 0 {
			p.keys = max(1, p.keys/1000) // each of them is used once
		}
		p.warmUp = min(p.warmUp, 5*time.Millisecond)
	}
	return p
}

// proven sets up a limiter of the plan's quota, after a small one has shown
// that it counts: of ten takes, five are admitted.
func (set setup) proven(ctx context.Context, s *stage, p plan) func() take {
	if p.onServer {
		nottest.Check(s.server.Client().FlushAll(ctx).Err())
	}
	ask, key, admitted := set(ctx, s, quota{5, time.Hour})(), p.keyNames(1)[0], 0
	for range 10 {
		if nottest.Must(ask(ctx, key)) {
			admitted++
		}
	}
	if admitted != 5 {
		s.Fatalf("admitted %d of 10 under a limit of 5", admitted)
	}
	return set(ctx, s, p.quota)
}

// A result has the samples of each contestant of a measure, by rounds.
type result struct {
	measure
	samples [][]sample
}

// median returns the median of a contestant's figure over the rounds, or NaN if no round has it.
func (r result) median(name string, f figure) float64 {
	i := r.index(name)
	if i < 0 {
		return math.NaN()
	}
	var values []float64
	for _, s := range r.samples[i] {
		if v, ok := s[f]; ok {
			values = append(values, v)
		}
	}
	return median(values)
}

// ratio returns how many times as good as penstock's figure a peer's is: the median of
// the ratios of each round, because a slow machine slows all contestants of a round down.
func (r result) ratio(peer string, f figure) float64 {
	var ratios []float64
	for n, ours := range r.samples[r.index(us)] {
		v, ok := ours[f]
		w, has := r.samples[r.index(peer)][n][f]
		if ok && has && f.more {
			v, w = w, v
		}
		if ok && has {
			ratios = append(ratios, v/w)
		}
	}
	return median(ratios)
}

// median returns the middle value, or the mean of the two middle ones. Without values
// it returns NaN.
func median(values []float64) float64 {
	v := slices.Sorted(slices.Values(values))
	if len(v) == 0 {
		return math.NaN()
	}
	return (v[(len(v)-1)/2] + v[len(v)/2]) / 2
}
