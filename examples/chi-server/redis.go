// The backend: in memory, or in Redis, which all instances share.

package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/algorithms/shared"
	"github.com/penstock-go/penstock/middleware"
	"github.com/penstock-go/penstock/middleware/overrides"
)

// A backend is where limits count, and where operators' overrides are stored.
type backend struct {
	limiter algorithms.Limiter
	table   ratelimit.Overrides
	closers []func() error // in order
}

func (b *backend) close() error {
	var errs []error
	for _, c := range b.closers {
		errs = append(errs, c())
	}
	return errors.Join(errs...)
}

// newBackend returns a backend in Redis, or in memory without -redis. If Redis is
// unavailable, the server serves all the same, and the limiter recovers by itself.
// Only a misconfiguration is an error.
func newBackend(ctx context.Context, c config, log *slog.Logger) (*backend, error) {
	if c.redis == nil {
		return &backend{limiter: algorithms.NewMemory(nil), table: overrides.NewMemory()}, nil
	}
	rdb := c.redis.Open()
	b := &backend{closers: []func() error{rdb.Close}}
	limiter, err := shared.New(rdb, &shared.Options{Prefix: c.prefix, Deadline: c.deadline, Instances: c.instances, Logger: log.With("redis", c.redis.Addrs)})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("-prefix: %s", strings.TrimPrefix(err.Error(), "shared: ")), b.close())
	}
	b.limiter, b.closers = limiter, slices.Insert(b.closers, 0, limiter.Close)
	if err := c.redis.Ready(ctx, limiter); errors.Is(err, shared.ErrMisconfigured) {
		_ = b.close() // it fails for the same reason
		return nil, err
	} else if err != nil {
		log.Warn("Redis not ready", "redis", c.redis.Addrs, "error", err) // with a hint, which the limiter's lines lack
	}
	table, err := overrides.NewRedis(rdb, limiter, &overrides.RedisOptions{Logger: log})
	if err != nil {
		return nil, errors.Join(err, b.close())
	}
	b.table, b.closers = table, slices.Insert(b.closers, 0, table.Close)
	return b, nil
}
