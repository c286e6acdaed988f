// The census of live instances: a sorted set in Redis. The score of an instance
// is the instant, by the server's clock, at which it last announced itself.

package shared

import (
	"context"
	"strconv"

	"github.com/redis/go-redis/v9"
)

// liveFor is how long an instance counts as live after it has announced itself.
const liveFor = 3 * beatEvery

// instancesKey cannot be a limit's key, which has more after the brace.
func (r *redisLayer) instancesKey() string { return r.prefix + "{instances}" }

// beat announces the instance id. It returns how many instances are live.
func (r *redisLayer) beat(ctx context.Context, id string) (live int64, err error) {
	key := r.instancesKey()
	if r.lane(key).circuit.open.Load() {
		return 0, errOpen
	}
	clock := redis.NewTimeCmd(ctx, "time")
	if err := r.do(ctx, clock); err != nil {
		return 0, err
	}
	now := clock.Val()
	count := redis.NewIntCmd(ctx, "zcard", key)
	err = r.do(ctx,
		redis.NewIntCmd(ctx, "zadd", key, now.UnixMilli(), id),
		redis.NewIntCmd(ctx, "zremrangebyscore", key, "-inf", strconv.FormatInt(now.Add(-liveFor).UnixMilli(), 10)),
		redis.NewBoolCmd(ctx, "pexpire", key, liveFor.Milliseconds()),
		count)
	if err != nil {
		return 0, err // the client may still write the reply
	}
	return count.Val(), nil
}

// retire removes the instance id.
func (r *redisLayer) retire(ctx context.Context, id string) error {
	return r.do(ctx, redis.NewIntCmd(ctx, "zrem", r.instancesKey(), id))
}
