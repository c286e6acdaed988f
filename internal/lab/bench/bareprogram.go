// The bare program: how little CPU Redis needs if a program does nothing except send
// bare.lua with many checks.

package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/algorithms/shared"
)

const (
	bareBatch    = 128 // the most checks that travel together
	bareInFlight = 2   // calls

	// phasesPerKeys is for how many phases the keys are used, about 30 times each: they
	// are fresh at first, then busy, and none is denied.
	phasesPerKeys = 10
)

var bareMeasures = []measure{{
	name:  "bareprogram",
	title: "Redis, token bucket, 256 callers, penstock and a bare program",
	plan: plan{
		callers: 256, keys: 10_000, quota: quota{100, time.Minute},
		lasts: second / 4, warmUp: second / 40, sampled: true, onServer: true,
	},
	times:   3,
	figures: []figure{serverCPU, checksPerSecond, p50, p99, checksPerScript},
	contestants: []contestant{
		{us, phased(fromRedis)},
		{"bare", phased(bareProgram)},
	},
	bars: []bar{{figure: serverCPU, against: []string{"bare"}, atMost: 1.15}},
}}

// phased measures a contestant in phases that follow each other. Unlike loaded, it
// goes on with the same keys. Before they are used up, it takes others.
func phased(set setup) start {
	return func(ctx context.Context, s *stage, p plan) (round, error) {
		takes, err := set.proven(ctx, s, p)
		if err != nil {
			return nil, err
		}
		l, n := newLoad(p, takes), 0
		if err := l.fill(ctx); err != nil {
			return nil, err
		}
		return func(ctx context.Context) (sample, error) {
			others := n / phasesPerKeys * p.keys
			l.keys = p.keyNames(others + p.keys)[others:]
			n++
			l.loop(ctx, p.warmUp)
			before, err := s.server.scripts(ctx)
			if err != nil {
				return nil, err
			}
			got, err := l.measure(ctx, s)
			if err != nil {
				return nil, err
			}
			after, err := s.server.scripts(ctx)
			got[checksPerScript] = float64(l.checks()) / (after - before)
			return got, err
		}, nil
	}
}

// checks returns how many checks the latest loop has made.
func (l *load) checks() (sum int) {
	for _, c := range l.callers {
		sum += c.checks
	}
	return sum
}

// scripts returns how many scripts the server has run by their digest.
func (s *server) scripts(ctx context.Context) (float64, error) {
	text, err := s.info(ctx, "commandstats", "cmdstat_evalsha")
	if err != nil {
		return 0, err
	}
	calls, _, _ := strings.Cut(strings.TrimPrefix(text, "calls="), ",")
	return strconv.ParseFloat(calls, 64)
}

// fromRedis is penstock with default options, except for its long deadline. A decision
// that did not come from Redis is an error.
func fromRedis(_ context.Context, s *stage, q quota) (func() take, error) {
	limiter, err := newShared(s, s.client(), shared.Options{})
	limit := algorithms.TokenBucket(q.requests, q.window)
	return func() take {
		checks := []algorithms.Check{{Policy: "clients", Limit: limit, Cost: 1}}
		return func(ctx context.Context, key string) (bool, error) {
			checks[0].Key = key
			if err := limiter.Allow(ctx, checks); err != nil {
				return false, err
			}
			d := &checks[0].Decision
			if d.Source != algorithms.Shared {
				return false, fmt.Errorf("a decision came from %v", d.Source)
			}
			return d.Allowed, nil
		}
	}, err
}

// A bareCheck waits for its answer.
type bareCheck struct {
	key  string
	done chan bareReply
}

type bareReply struct {
	allowed bool
	err     error
}

// bareProgram gathers the checks that wait on one goroutine, up to 128, and has two
// calls in flight.
func bareProgram(ctx context.Context, s *stage, q quota) (func() take, error) {
	script := newBare(s.client(), algorithms.TokenBucket(q.requests, q.window))
	waiting := make(chan *bareCheck, 4*bareBatch)
	s.onClose(func() { close(waiting) })
	go script.gather(ctx, waiting)
	return func() take {
		check := &bareCheck{done: make(chan bareReply, 1)}
		return func(_ context.Context, key string) (bool, error) {
			check.key = "bare-run:{" + key + "}:clients:tb" // as long as penstock's
			waiting <- check
			reply := <-check.done
			return reply.allowed, reply.err
		}
	}, nil
}

// gather sends the checks that wait, until the channel is closed. A check whose key is
// already in the batch begins the next one, because the script reads each key once.
func (b bare) gather(ctx context.Context, waiting <-chan *bareCheck) {
	idle := make(chan []*bareCheck, bareInFlight)
	for range bareInFlight {
		idle <- make([]*bareCheck, 0, bareBatch)
	}
	keys := map[string]bool{}
	var late *bareCheck
	for {
		first := late
		if late = nil; first == nil {
			if first = <-waiting; first == nil {
				return
			}
		}
		batch := append((<-idle)[:0], first)
		clear(keys)
		keys[first.key] = true
		for late == nil && len(batch) < bareBatch && len(waiting) > 0 {
			if next := <-waiting; keys[next.key] {
				late = next
			} else {
				keys[next.key] = true
				batch = append(batch, next)
			}
		}
		go func() {
			b.send(ctx, batch)
			idle <- batch
		}()
	}
}

// send decides a batch, and wakes its callers.
func (b bare) send(ctx context.Context, batch []*bareCheck) {
	keys := make([]string, len(batch))
	for i, check := range batch {
		keys[i] = check.key
	}
	answers, err := b.ask(ctx, keys, make([]bareAnswer, 0, len(batch)))
	for i, check := range batch {
		reply := bareReply{err: err}
		if err == nil {
			reply.allowed = answers[i].allowed
		}
		check.done <- reply
	}
}
