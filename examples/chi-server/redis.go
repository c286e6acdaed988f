package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/algorithms/overrides"
)

const (
	readyTimeout = 3 * time.Second
	readyEvery   = 20 * time.Millisecond
)

// newShared returns a limiter in Redis. If that is down the server serves all
// the same, and the limiter recovers by itself; only a mistake of whoever
// configured it is an error.
func newShared(ctx context.Context, c config, w *watch) (*backend, error) {
	rdb := c.redis.open()
	stack, err := algorithms.NewShared(rdb, &algorithms.Options{
		Redis:    algorithms.RedisOptions{Prefix: c.prefix},
		Fallback: algorithms.FallbackOptions{OpenFor: c.openFor},
		Observe:  w.events(c.redis.addrs),
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("-prefix: %w", err), rdb.Close())
	}
	table, err := overrides.NewRedis(rdb, &overrides.RedisOptions{Prefix: c.prefix, Logger: w.log})
	if err != nil {
		return nil, errors.Join(err, stack.Close(), rdb.Close())
	}
	closeAll := func() error { return errors.Join(table.Close(), stack.Close(), rdb.Close()) }
	if err := ready(ctx, stack); algorithms.Classify(err) == algorithms.ErrorConfiguration {
		return nil, errors.Join(fmt.Errorf("cannot use Redis at %s: %w", c.redis.addrs, err), closeAll())
	}
	return &backend{stack, table, closeAll}, w.limiter("redis", stack)
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
