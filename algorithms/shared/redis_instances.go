package algorithms

import (
	"context"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
)

// liveFor is how long an instance counts as live after it made itself known.
const liveFor = 3 * beatEvery

// instancesKey cannot be a limit's: those have more after the brace.
func (r *Redis) instancesKey() string { return r.prefix + "{instances}" }

// beat keeps the instances in a sorted set, each with the instant by the
// server's clock at which it was last known. It implements registrar.
func (r *Redis) beat(ctx context.Context, id string) (live int64, skew time.Duration, err error) {
	key := r.instancesKey()
	asked := time.Now()
	clock := redis.NewTimeCmd(ctx, "time")
	if err := r.command(ctx, clock); err != nil {
		return 0, 0, err
	}
	now := clock.Val()
	add := redis.NewIntCmd(ctx, "zadd", key, now.UnixMilli(), id)
	gone := redis.NewIntCmd(ctx, "zremrangebyscore", key, "-inf", strconv.FormatInt(now.Add(-liveFor).UnixMilli(), 10))
	expire := redis.NewBoolCmd(ctx, "pexpire", key, liveFor.Milliseconds())
	count := redis.NewIntCmd(ctx, "zcard", key)
	for _, cmd := range []redis.Cmder{add, gone, expire, count} {
		if err := r.command(ctx, cmd); err != nil {
			return 0, 0, err
		}
	}
	return count.Val(), r.skew(now.Sub(asked)), nil
}

// skew returns how far the clock of decisions is ahead of ours, given the
// server's.
func (r *Redis) skew(server time.Duration) time.Duration {
	if r.now == nil {
		return server
	}
	return time.Until(r.now())
}

func (r *Redis) retire(ctx context.Context, id string) error {
	return r.command(ctx, redis.NewIntCmd(ctx, "zrem", r.instancesKey(), id))
}

// maxAlone bounds the commands outside of lanes that were given up and that the
// client still waits for.
const maxAlone = 4

// command sends a command, and returns when ctx ends, whatever the client does.
func (r *Redis) command(ctx context.Context, cmd redis.Cmder) error {
	if r.alone.Add(1) > maxAlone {
		r.alone.Add(-1)
		return ErrOverloaded
	}
	done := make(chan error, 1)
	go func() {
		defer r.alone.Add(-1)
		done <- r.client.Process(ctx, cmd)
	}()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
