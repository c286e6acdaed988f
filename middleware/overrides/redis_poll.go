// When overrides are read from Redis.

package overrides

import (
	"context"
	"fmt"
	"log/slog"
	"time"
)

const (
	// Other instances see an edit within a second: half of it passes until the
	// next poll, and half is for reading.
	pollEvery = 500 * time.Millisecond

	// sweepEvery is the time between two removals of ended overrides.
	sweepEvery = time.Minute
)

// Refresh reads the changes from Redis. Call it at startup if the service must
// know its overrides before it serves. Errors are the client's or the
// context's.
func (r *Redis) Refresh(ctx context.Context) error {
	if err := r.wait(ctx); err != nil {
		return err
	}
	defer func() { <-r.reading }()
	err := r.read(ctx)
	if ctx.Err() == nil {
		r.report(err)
	}
	return err
}

// wait waits for the place in reading, or until ctx ends: the reader before may wait for a Redis that hangs.
func (r *Redis) wait(ctx context.Context) error {
	select {
	case r.reading <- struct{}{}:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("ratelimit: %w", ctx.Err())
	}
}

// report logs the beginning and the end of trouble. It requires the place in
// reading.
func (r *Redis) report(err error) {
	switch failing := err != nil; {
	case failing && !r.failing:
		r.log.Add(slog.LevelWarn, "overrides not refreshed", "error", err)
	case !failing && r.failing:
		r.log.Add(slog.LevelInfo, "overrides refreshed again")
	}
	r.failing = err != nil
}

// poll is the one goroutine of r.
func (r *Redis) poll() {
	defer close(r.closed)
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for swept := time.Now(); ; {
		_ = r.Refresh(r.closing) // it has logged its error
		if time.Since(swept) >= sweepEvery {
			r.sweep(r.closing)
			swept = time.Now()
		}
		select {
		case <-tick.C:
		case <-r.closing.Done():
			return
		}
	}
}
