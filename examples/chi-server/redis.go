package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/penstock-go/penstock/algorithms"
)

const (
	readyTimeout = 3 * time.Second
	readyEvery   = 20 * time.Millisecond
)

// newShared returns a limiter in Redis. If that is down the server serves all
// the same, and the limiter recovers by itself; only a mistake of whoever
// configured it is an error.
func newShared(ctx context.Context, c config, log *slog.Logger) (algorithms.Limiter, func() error, error) {
	rdb := c.redis.open()
	w := &watch{log: log.With("redis", c.redis.addrs)}
	stack, err := algorithms.NewShared(rdb, &algorithms.Options{
		Redis:    algorithms.RedisOptions{Prefix: c.prefix},
		Fallback: algorithms.FallbackOptions{OpenFor: c.openFor},
		Observe:  w.observe,
	})
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("-prefix: %w", err), rdb.Close())
	}
	closeAll := func() error { return errors.Join(stack.Close(), rdb.Close()) }
	if err := ready(ctx, stack); algorithms.Classify(err) == algorithms.ErrorConfiguration {
		return nil, nil, errors.Join(fmt.Errorf("cannot use Redis at %s: %w", c.redis.addrs, err), closeAll())
	}
	return stack, closeAll, nil
}

// ready returns nil once Redis answers, and else why it does not when the
// limiter has opened its circuit: from there on it says itself how it goes. One
// failure may be the first connection's, which takes longest.
func ready(ctx context.Context, stack *algorithms.Stack) error {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	again := time.NewTicker(readyEvery)
	defer again.Stop()
	for {
		err := stack.Ready(ctx)
		if err == nil || algorithms.Classify(err) == algorithms.ErrorConfiguration || stack.Stats().Fallback.Open {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-again.C:
		}
	}
}

// A watch logs what an operator should know, once per change. How often the rest
// happens is in the limiter's Stats.
type watch struct {
	log           *slog.Logger
	misconfigured atomic.Bool // and it was logged
}

func (w *watch) observe(e algorithms.Event) {
	switch e.Kind {
	case algorithms.EventOpened:
		w.log.Error("Redis is not available: this instance limits by itself until it is", "class", e.Class, "error", e.Err)
	case algorithms.EventClosed:
		w.log.Info("Redis is available again")
		w.misconfigured.Store(false)
	case algorithms.EventError:
		if e.Class == algorithms.ErrorConfiguration && !w.misconfigured.Swap(true) {
			w.log.Error("Redis is not configured for the limiter", "error", e.Err)
		}
	}
}
