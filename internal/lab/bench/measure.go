// A measure: contestants that take turns, and the bars for their figures.

package main

import (
	"context"
	"fmt"
	"math"
	"regexp"
	"runtime"
	"slices"
	"time"
)

// A measure puts one question to several contestants, in alternating rounds.
type measure struct {
	name        string // for -only
	title       string
	plan        plan
	figures     []figure
	contestants []contestant
	once        bool // the figures hardly vary: one round does
	times       int  // so many rounds instead of each round; 0: one
	long        bool // a quick run leaves it out
	curve       bool // it is a point of a curve, which has tables of its own
	bars        []bar
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
	mayFail  bool               // failed checks are a figure; otherwise one in a hundred is an error
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
	commands        = figure{"Redis commands per check", "", false}
	failures        = figure{"failed checks", "%", false}
	bytesPerKey     = figure{"memory per key", "B", false}
	speedup         = figure{"2 goroutines, speed-up", "x", true}
	growth          = figure{"1 000 to 1 000 000 keys, slow-down", "x", false}
	holdLongest     = figure{"one script, longest", "µs", false}
	holdTypical     = figure{"one script, median", "µs", false}
	overAdmitted    = figure{"admitted above the limit", "units", false}
	denied          = figure{"denied", "%", false}
	underAdmitted   = figure{"admitted below the limit", "%", false}
)

// A contestant takes part in a measure.
type contestant struct {
	name  string
	start start
}

// A start sets a contestant up, and makes sure that it limits.
type start func(ctx context.Context, s *stage, p plan) (round, error)

// A round measures a contestant once.
type round func(ctx context.Context) (sample, error)

// A take asks for one unit of key, and reports whether it was admitted.
type take func(ctx context.Context, key string) (bool, error)

// A setup makes a limiter of one quota. It returns a function that makes a take for
// each goroutine, with buffers of its own.
type setup func(ctx context.Context, s *stage, q quota) (func() take, error)

// A bar is a bound that a figure has to meet.
type bar struct {
	figure  figure
	who     string   // the contestant; empty: penstock
	worst   bool     // the contestant with the largest figure, instead of who
	against []string // judge the ratio to the best of these; nil: the figure itself
	atLeast float64
	atMost  float64
	firm    bool   // a quick run fails if the bar is missed
	why     string // the reason if the bar is missed
	group   string // bars of one group share a row, which shows the worst of them
}

const us = "penstock"

// reduced returns the measure with only the contestants whose names match, and
// with only the bars that compare these. A bar for the worst row stays, because each
// row has to meet it.
func (m measure) reduced(names *regexp.Regexp) measure {
	m.contestants = slices.DeleteFunc(slices.Clone(m.contestants), func(c contestant) bool { return !names.MatchString(c.name) })
	m.bars = slices.DeleteFunc(slices.Clone(m.bars), func(b bar) bool {
		left := func(name string) bool { return m.index(name) < 0 }
		return !b.worst && left(b.whose()) || slices.ContainsFunc(b.against, left)
	})
	return m
}

// run returns the samples of each contestant, by rounds.
func (m *measure) run(ctx context.Context, s *stage, rounds int) ([][]sample, error) {
	p := m.plan.in(s)
	steps := make([]round, len(m.contestants))
	for i, c := range m.contestants {
		var err error
		if steps[i], err = c.start(ctx, s, p); err != nil {
			return nil, fmt.Errorf("%s: %w", c.name, err)
		}
	}
	if m.once {
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
			got, err := steps[i](ctx)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", m.contestants[i].name, err)
			}
			results[i] = append(results[i], got)
		}
	}
	return results, nil
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
func (set setup) proven(ctx context.Context, s *stage, p plan) (func() take, error) {
	if p.onServer {
		if err := s.server.flush(ctx); err != nil {
			return nil, err
		}
	}
	small, err := set(ctx, s, quota{5, time.Hour})
	if err != nil {
		return nil, err
	}
	ask, key, admitted := small(), p.keyNames(1)[0], 0
	for range 10 {
		ok, err := ask(ctx, key)
		if err != nil {
			return nil, err
		}
		if ok {
			admitted++
		}
	}
	if admitted != 5 {
		return nil, fmt.Errorf("admitted %d of 10 under a limit of 5", admitted)
	}
	return set(ctx, s, p.quota)
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
