// Cells of the measure of instructions: calls that find their keys in a known state.

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/penstock-go/penstock/algorithms"
)

// A cell is a kind of call, and the state of its keys.
type cell struct {
	name   string
	limits []algorithms.Limit // of a call's checks; each has a policy of its own
	before []int64            // the costs of the takes that bring keys into their state, 15 ms apart
	ops    []algorithms.Op    // the counted ops, one after the other; nil: a take

	// Of the cells that are also measured with the bare script:
	bare   bool
	denied bool
	used   [2]int64 // the least and the most units in use afterwards
}

// apartBy is the time between the takes of before, so that buckets see calls at different instants.
const apartBy = 15 * time.Millisecond

// A cellRun is a cell with the checks of a run. The first round is not counted.
type cellRun struct {
	*cell
	size  int // calls per round
	calls [][]algorithms.Check
}

// errDisturbed is wrapped by errors of runs that may succeed on a less busy machine.
var errDisturbed = errors.New("disturbed")

func (c *cell) run(size, rounds int) *cellRun {
	run := &cellRun{cell: c, size: size}
	for i := range (1 + rounds) * size {
		var call []algorithms.Check
		for j, limit := range c.limits {
			call = append(call, algorithms.Check{
				Policy: string(rune('p' + j)), Key: fmt.Sprintf("user:%d", 100_000+i), Limit: limit,
			})
		}
		run.calls = append(run.calls, call)
	}
	return run
}

// round returns the calls of a round, prepared for an op.
func (r *cellRun) round(n int, op algorithms.Op) [][]algorithms.Check {
	return prepared(r.calls[n*r.size:(n+1)*r.size], op, 1)
}

// prepared sets the op and the cost of calls. A return needs the receipt of a take.
func prepared(calls [][]algorithms.Check, op algorithms.Op, cost int64) [][]algorithms.Check {
	for _, call := range calls {
		for i := range call {
			call[i].Op, call[i].Cost = op, cost
			if op == algorithms.Take {
				call[i].Decision = algorithms.Decision{}
			}
		}
	}
	return calls
}

func (c *cell) allOps() []algorithms.Op {
	if c.ops == nil {
		return []algorithms.Op{algorithms.Take}
	}
	return c.ops
}

// rounds returns the number of counted rounds.
func (r *cellRun) rounds() int { return len(r.calls)/r.size - 1 }

// counted returns the number of counted checks.
func (r *cellRun) counted() int { return r.rounds() * r.size * len(r.limits) * len(r.allOps()) }

// check returns an error if other units are in use than the cell says.
func (c *cell) check(n int64) error {
	if c.bare && (n < c.used[0] || n > c.used[1]) {
		return fmt.Errorf("%d units are in use, want %d to %d: %w", n, c.used[0], c.used[1], errDisturbed)
	}
	return nil
}

// verify checks the answers to the counted calls.
func (r *cellRun) verify() error {
	for _, call := range r.calls[r.size:] {
		for i := range call {
			d := &call[i].Decision
			if d.Source != algorithms.Shared {
				return fmt.Errorf("a decision came from %v: %w", d.Source, errDisturbed)
			}
			if r.ops == nil && d.Allowed == r.denied {
				return fmt.Errorf("a take has the answer %t: %w", d.Allowed, errDisturbed)
			}
		}
		if err := r.check(call[0].Limit.Burst() - call[0].Decision.Remaining); err != nil {
			return err
		}
	}
	return nil
}

// prepare brings the keys into their state.
func (b *workbench) prepare(ctx context.Context, r *cellRun) error {
	for _, cost := range r.before {
		if err := apart(ctx, b.limiter, prepared(r.calls, algorithms.Take, cost)); err != nil {
			return err
		}
		time.Sleep(apartBy)
	}
	return nil
}

// send sends the rounds from first to before end.
func (b *workbench) send(ctx context.Context, r *cellRun, first, end int) error {
	for n := first; n < end; n++ {
		for _, op := range r.allOps() {
			if err := b.splitter.together(ctx, b.limiter, r.round(n, op)); err != nil {
				return err
			}
		}
	}
	return nil
}

// ours measures penstock: the thousands of instructions per check, and the checks per
// script.
func (b *workbench) ours(ctx context.Context, r *cellRun) (instructions, perScript float64, err error) {
	if err := b.prepare(ctx, r); err != nil {
		return 0, 0, err
	}
	if err := b.send(ctx, r, 0, 1); err != nil {
		return 0, 0, err
	}
	rounds, before := r.rounds(), b.limiter.Stats().Redis.Scripts
	total, err := b.callgrind.count(ctx, func() error { return b.send(ctx, r, 1, 1+rounds) })
	if err != nil {
		return 0, 0, err
	}
	scripts := int(b.limiter.Stats().Redis.Scripts - before)
	if r.size > 1 {
		scripts -= rounds * len(r.allOps()) // the blockers
	}
	perScript = float64(r.counted()) / float64(scripts)
	if r.bare && scripts != rounds {
		return 0, 0, fmt.Errorf("%d scripts for %d batches: %w", scripts, rounds, errDisturbed)
	}
	return total / float64(r.counted()) / 1000, perScript, r.verify()
}

// theirs measures the bare script with the same keys: the thousands of instructions per
// check.
func (b *workbench) theirs(ctx context.Context, r *cellRun) (float64, error) {
	script := newBare(b.splitter.measured, r.limits[0])
	var keys []string
	for _, call := range r.calls {
		keys = append(keys, b.limiter.StoredKey(call[0]))
	}
	units := int64(0)
	for _, cost := range r.before {
		units += cost
	}
	if err := script.use(ctx, keys, units); err != nil {
		return 0, err
	}
	time.Sleep(apartBy)
	var answers, all []bareAnswer
	send := func(first, end int) (err error) {
		for n := first; n < end; n += r.size {
			if answers, err = script.ask(ctx, keys[n:n+r.size], answers); err != nil {
				return err
			}
			all = append(all, answers...)
		}
		return nil
	}
	if err := send(0, r.size); err != nil {
		return 0, err
	}
	total, err := b.callgrind.count(ctx, func() error { return send(r.size, len(keys)) })
	if err != nil {
		return 0, err
	}
	for _, a := range all[r.size:] {
		if a.allowed == r.denied {
			return 0, fmt.Errorf("bare.lua answers %t: %w", a.allowed, errDisturbed)
		}
		if err := r.check(a.n); err != nil {
			return 0, err
		}
	}
	return total / float64(r.counted()) / 1000, nil
}
