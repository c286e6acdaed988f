package main

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/algorithms/shared"
)

// A splitter is a client that sends scripts to one server and all other commands to
// another. So the first server executes nothing except the measured scripts.
//
// It also makes batches of a known size. The limiter has one batch in flight. The next
// script is a blocker: the splitter holds it, and all other calls queue behind it.
// Released, it goes to the other server, and the queue travels as one batch.
type splitter struct {
	measured, aside *redis.Client
	blockers        chan chan struct{} // each holds a script until it is closed
}

func newSplitter(measured, aside *redis.Client) *splitter {
	return &splitter{measured, aside, make(chan chan struct{}, 2)}
}

// Process implements the interface of the limiter's clients.
func (s *splitter) Process(ctx context.Context, cmd redis.Cmder) error {
	if !strings.HasPrefix(cmd.Name(), "eval") {
		return s.aside.Process(ctx, cmd)
	}
	select {
	case released := <-s.blockers:
		<-released
		return s.aside.Process(ctx, cmd)
	default:
		return s.measured.Process(ctx, cmd)
	}
}

// blocker is a call that keeps others waiting.
func blocker() []algorithms.Check {
	return []algorithms.Check{{Policy: "blocker", Key: "blocker", Limit: algorithms.TokenBucket(1_000_000, time.Second), Cost: 1}}
}

// ready sends a blocker without a hold, so that the other server knows its script. A
// script takes two commands if the server does not know it.
func (s *splitter) ready(ctx context.Context, l *shared.Limiter) error {
	released := make(chan struct{})
	close(released)
	s.blockers <- released
	s.blockers <- released
	err := l.Allow(ctx, blocker())
	for len(s.blockers) > 0 {
		<-s.blockers
	}
	return err
}

// together sends calls in one batch, each from a caller of its own.
func (s *splitter) together(ctx context.Context, l *shared.Limiter, calls [][]algorithms.Check) error {
	if len(calls) == 1 {
		return l.Allow(ctx, calls[0])
	}
	before, checks := l.Stats().Redis.Checks, uint64(1)
	released := make(chan struct{})
	s.blockers <- released
	var group sync.WaitGroup
	errs := make([]error, 1+len(calls))
	group.Go(func() { errs[0] = l.Allow(ctx, blocker()) })
	for len(s.blockers) > 0 {
		time.Sleep(50 * time.Microsecond)
	}
	for i, call := range calls {
		checks += uint64(len(call))
		group.Go(func() { errs[1+i] = l.Allow(ctx, call) })
	}
	for l.Stats().Redis.Checks < before+checks {
		time.Sleep(100 * time.Microsecond)
	}
	time.Sleep(2 * time.Millisecond) // a check is counted just before it is queued
	close(released)
	group.Wait()
	return firstOf(errs)
}

// apart sends calls in batches of any size, from at most 48 callers at a time.
func apart(ctx context.Context, l *shared.Limiter, calls [][]algorithms.Check) error {
	errs := make([]error, 48)
	var group sync.WaitGroup
	for i := range errs {
		group.Go(func() {
			for j := i; j < len(calls) && errs[i] == nil; j += len(errs) {
				errs[i] = l.Allow(ctx, calls[j])
			}
		})
	}
	group.Wait()
	return firstOf(errs)
}

func firstOf(errs []error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
