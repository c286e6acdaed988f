// The census of live instances: a sorted set in Redis. The score of an instance
// is the instant, by the server's clock, at which it last announced itself.

package shared

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/penstock-go/penstock/algorithms/shared/internal/trouble"
)

// liveFor is how long an instance counts as live after it has announced itself.
const liveFor = 3 * beatEvery

// severalFor is for how long there must be several limiters before one of them finds
// that Options.Instances is missing. A deploy of one instance has two for some seconds.
const severalFor = time.Minute

// findEvery is how often beats look for findings, which an operator's command can cause at any time.
const findEvery = time.Minute

// instancesKey cannot be a limit's key, which has more after the brace.
func (r *redisLayer) instancesKey() string { return r.prefix + "{instances}" }

// beat announces the instance id. It returns how many instances are live.
func (r *redisLayer) beat(ctx context.Context, id string) (live int64, err error) {
	key := r.instancesKey()
	if r.lane(key).Circuit.Stops(false) {
		return 0, trouble.ErrOpen
	}
	clock := redis.NewTimeCmd(ctx, "time")
	if err := r.transport.Do(ctx, clock); err != nil {
		return 0, err
	}
	now := clock.Val()
	count := redis.NewIntCmd(ctx, "zcard", key)
	err = r.transport.Do(ctx,
		redis.NewIntCmd(ctx, "zadd", key, now.UnixMilli(), id),
		redis.NewIntCmd(ctx, "zremrangebyscore", key, "-inf", strconv.FormatInt(now.Add(-liveFor).UnixMilli(), 10)),
		redis.NewBoolCmd(ctx, "pexpire", key, liveFor.Milliseconds()),
		count)
	if err != nil {
		return 0, err // the client may still write the reply
	}
	live = count.Val()
	r.counted(live)
	if time.Since(r.foundAt) >= findEvery {
		r.findings(ctx)
		r.foundAt = time.Now()
	}
	return live, nil
}

// counted: a beat has counted so many live limiters.
func (r *redisLayer) counted(live int64) {
	if live <= 1 {
		r.report.alone = time.Now()
	}
	r.report.find(r.report.guesses && time.Since(r.report.alone) >= severalFor, "PS202",
		fmt.Sprintf("%d limiters share Redis, and Options.Instances is not set: each one that starts while Redis is away admits whole limits.", live),
		fmt.Sprintf("Set Options.Instances to %d.", live))
}

// retire removes the instance id.
func (r *redisLayer) retire(ctx context.Context, id string) error {
	return r.transport.Do(ctx, redis.NewIntCmd(ctx, "zrem", r.instancesKey(), id))
}
