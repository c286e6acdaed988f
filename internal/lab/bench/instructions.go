// Instructions of redis-server per check: penstock's script beside the bare one.
// Unlike times, they hardly depend on the machine and its other work. If a span of a
// bucket ends during a cell (see state.lua), its takes need up to 10 thousand more.

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/algorithms/shared"
)

var (
	ourInstructions  = figure{"penstock", "", false}
	bareInstructions = figure{"bare", "", false}
	overBare         = figure{"instructions, ratio to bare", "", false}
	aboveBare        = figure{"instructions above bare", "thousand", false}
	checksPerScript  = figure{"checks per script", "", true}
)

const (
	batchSize   = 48  // of takes that come together; the limiter sends at most 48
	callsSize   = 16  // of calls with several checks
	batchRounds = 16  // of each cell
	loneRounds  = 300 // of each cell with batches of one call
)

var instructionMeasures = []measure{{
	name:        "instructions",
	title:       "Redis, thousand instructions per check",
	once:        true,
	figures:     []figure{ourInstructions, bareInstructions, overBare, aboveBare, checksPerScript},
	contestants: cellContestants(),
	bars:        cellBars(),
}}

var (
	usual = algorithms.TokenBucket(100, time.Minute)
	slow  = algorithms.TokenBucket(1, time.Minute).WithBurst(500) // a unit takes 60 s
)

// bareCells are takes of token buckets that the bare script decides, too.
var bareCells = []cell{
	{name: "fresh", limits: limits(usual), bare: true, used: [2]int64{1, 1}},
	{name: "shallow", limits: limits(usual), before: []int64{4, 1}, bare: true, used: [2]int64{2, 6}},
	{name: "slow", limits: limits(slow), before: []int64{5, 1}, bare: true, used: [2]int64{7, 7}},
	{name: "busy, 30/min", limits: limits(algorithms.TokenBucket(30, time.Minute)), before: []int64{20, 1}, bare: true, used: [2]int64{3, 22}},
	{name: "busy, 1/min", limits: limits(slow), before: []int64{100, 1}, bare: true, used: [2]int64{102, 102}},
	{name: "denied", limits: limits(slow), before: []int64{499, 1}, bare: true, denied: true, used: [2]int64{500, 500}},
}

// loneCells are takes under other limits, and returns.
var loneCells = []cell{
	{name: "leaky bucket", limits: limits(algorithms.LeakyBucket(100, time.Minute)), before: []int64{4, 1}},
	{name: "sliding window counter", limits: limits(algorithms.SlidingWindowCounter(100, time.Hour)), before: []int64{1, 1}},
	{name: "fixed window", limits: limits(algorithms.FixedWindow(100, time.Hour)), before: []int64{1, 1}},
	{name: "calendar day", limits: limits(algorithms.PerDay(100, nil)), before: []int64{1, 1}},
	{name: "sliding window log", limits: limits(algorithms.SlidingWindowLog(100, time.Hour)), before: []int64{1, 1}},
	{name: "concurrent, take and return", limits: limits(algorithms.Concurrent(100, time.Hour)), before: []int64{2},
		ops: []algorithms.Op{algorithms.Take, algorithms.Return}},
}

// callCells are calls with several checks.
var callCells = []cell{
	{name: "two buckets", limits: limits(usual, usual), before: []int64{4, 1}},
	{name: "three buckets of different limits", before: []int64{4, 1},
		limits: limits(usual, algorithms.TokenBucket(1000, time.Hour), algorithms.LeakyBucket(30, time.Minute))},
	{name: "bucket, counter and window", before: []int64{4, 1},
		limits: limits(usual, algorithms.SlidingWindowCounter(100, time.Hour), algorithms.FixedWindow(100, time.Hour))},
}

var returnCells = []cell{{
	name: "return of a bucket's take", limits: limits(usual), before: []int64{4, 1}, ops: []algorithms.Op{algorithms.Return},
}}

func limits(l ...algorithms.Limit) []algorithms.Limit { return l }

func cellContestants() (rows []contestant) {
	add := func(cells []cell, sizes ...int) {
		for _, size := range sizes {
			for i := range cells {
				rows = append(rows, contestant{rowName(&cells[i], size), cells[i].start(size)})
			}
		}
	}
	add(bareCells, batchSize, 1)
	add(loneCells, batchSize, 1)
	add(callCells, callsSize, 1)
	add(returnCells, 1)
	return rows
}

func rowName(c *cell, size int) string {
	if size == 1 {
		return c.name + ", alone"
	}
	return fmt.Sprintf("%s, %d calls", c.name, size)
}

func cellBars() (bars []bar) {
	for _, size := range []int{batchSize, 1} {
		for i := range bareCells {
			c := &bareCells[i]
			b := bar{figure: overBare, who: rowName(c, size), atMost: 1.15, group: "batches of 48"}
			if size == 1 {
				b.atMost, b.group = 1.5, "lone calls"
			}
			if c.denied {
				b.figure, b.atMost = aboveBare, 8
				if size == 1 {
					b.atMost = 40
				}
			}
			bars = append(bars, b)
		}
	}
	return bars
}

// start measures a cell with batches of so many calls. It repeats a run that a busy
// machine has disturbed.
func (c *cell) start(size int) start {
	return func(ctx context.Context, s *stage, _ plan) (round, error) {
		b, err := s.workbenchOf(ctx)
		if err != nil {
			return nil, err
		}
		rounds := batchRounds
		if size == 1 {
			rounds = loneRounds
		}
		if s.quick {
			rounds = 1
		}
		return func(ctx context.Context) (sample, error) {
			for left := 2; ; left-- {
				got, err := b.measure(ctx, c, size, rounds)
				if left == 0 || !errors.Is(err, errDisturbed) {
					return got, err
				}
			}
		}, nil
	}
}

// A workbench has a server whose instructions are counted, and a limiter whose scripts
// go there. On a quick stage nothing is counted.
type workbench struct {
	callgrind *callgrind // nil: counts nothing
	splitter  *splitter
	limiter   *shared.Limiter
}

// workbenchOf returns the stage's workbench.
func (s *stage) workbenchOf(ctx context.Context) (*workbench, error) {
	if s.workbench != nil {
		return s.workbench, nil
	}
	patient := func(o *redis.Options) { o.ReadTimeout = time.Minute }
	aside := s.client()
	b := &workbench{splitter: newSplitter(s.client(patient), aside)}
	if !s.quick {
		counted, err := startCallgrind(ctx)
		if err != nil {
			return nil, err
		}
		s.onClose(counted.close)
		b.callgrind = counted
		b.splitter.measured = (&stage{server: counted.server}).client(patient)
		if err := ballast(ctx, b.splitter.measured); err != nil {
			return nil, err
		}
	}
	limiter, err := newShared(s, b.splitter, shared.Options{InFlight: 1, Views: shared.ViewsOff})
	if err != nil {
		return nil, err
	}
	b.limiter, s.workbench = limiter, b
	return b, b.splitter.ready(ctx, limiter)
}

// ballast makes keys, so that the server's tables do not grow while a cell is measured.
func ballast(ctx context.Context, client *redis.Client) error {
	return client.Eval(ctx, "for i = 1, 5000 do redis.call('SET', 'ballast:' .. i, 1, 'EX', 86400) end return 1", nil).Err()
}

// clear deletes the keys of the cell before.
func (b *workbench) clear(ctx context.Context) error {
	script := "for _, key in ipairs(redis.call('KEYS', 'penstock:{user:*')) do redis.call('DEL', key) end return 1"
	return b.splitter.measured.Eval(ctx, script, nil).Err()
}

func (b *workbench) measure(ctx context.Context, c *cell, size, rounds int) (sample, error) {
	if err := b.clear(ctx); err != nil {
		return nil, err
	}
	ours, perScript, err := b.ours(ctx, c.run(size, rounds))
	if err != nil {
		return nil, err
	}
	got := sample{ourInstructions: ours, checksPerScript: perScript}
	if !c.bare {
		return got, nil
	}
	if err := b.clear(ctx); err != nil {
		return nil, err
	}
	theirs, err := b.theirs(ctx, c.run(size, rounds))
	if err != nil {
		return nil, err
	}
	got[bareInstructions], got[overBare], got[aboveBare] = theirs, ours/theirs, ours-theirs
	return got, nil
}
