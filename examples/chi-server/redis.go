package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/penstock-go/penstock/algorithms/overrides"
	"github.com/penstock-go/penstock/algorithms/shared"
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
	limiter, err := shared.New(rdb, &shared.Options{
		Prefix: c.prefix, OpenFor: c.openFor, Logger: w.log.With("redis", c.redis.addrs),
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("-prefix: %w", err), rdb.Close())
	}
	table, err := overrides.NewRedis(rdb, &overrides.RedisOptions{Prefix: c.prefix, Logger: w.log})
	if err != nil {
		return nil, errors.Join(err, limiter.Close(), rdb.Close())
	}
	closeAll := func() error { return errors.Join(table.Close(), limiter.Close(), rdb.Close()) }
	if err := ready(ctx, limiter); errors.Is(err, shared.ErrMisconfigured) {
		return nil, errors.Join(fmt.Errorf("cannot use Redis at %s: %w", c.redis.addrs, err), closeAll())
	}
	return &backend{limiter, table, closeAll}, w.limiter("redis", limiter)
}

// ready returns nil once Redis answers, and else why it does not when the
// limiter has opened its circuit: from there on it says itself how it goes. One
// failure may be the first connection's, which takes longest.
func ready(ctx context.Context, limiter *shared.Limiter) error {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	again := time.NewTicker(readyEvery)
	defer again.Stop()
	for {
		err := limiter.Ready(ctx)
		if err == nil || errors.Is(err, shared.ErrMisconfigured) || limiter.Stats().Fallback.Open {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-again.C:
		}
	}
}
