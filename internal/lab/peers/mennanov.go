package main

import (
	"context"
	"errors"
	"time"

	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/mennanov/limiters"
)

// What mennanov/limiters's documentation says, whatever the store.
var (
	mennanovTakes    = quote{"Take takes tokens from the bucket.", "tokenbucket.go"}
	mennanovWait     = quote{"In this case the returned duration is the amount of time to wait to retry the request.", "tokenbucket.go"}
	mennanovRegistry = quote{"Registry is a thread-safe garbage-collectable registry of values.", "registry.go"}
	mennanovLocal    = quote{"The state is not shared nor persisted so it won't survive restarts or failures.", "tokenbucket.go"}
	mennanovFails    = quote{"The limiter failed. This error should be logged and examined.", "README.md"}
)

var mennanovMemory = library{
	name: "mennanov/limiters", slug: "mennanov-memory", module: "github.com/mennanov/limiters", store: "memory",
	open: func(t *trial, q quota) (*limiter, error) {
		return mennanovBy(t, q, func(string) (limiters.DistLocker, limiters.TokenBucketStateBackend) {
			return limiters.NewLockNoop(), limiters.NewTokenBucketInMemory()
		}), nil
	},
	absent: []string{"several", "remaining", "instances", "outage", "outage-limit", "forged", "refund"},
	says: map[string]quote{
		"": mennanovTakes, "wait": mennanovWait, "burst": mennanovWait, "expiry": mennanovRegistry, "keys": mennanovRegistry,
		"instances": mennanovLocal, "outage": mennanovLocal, "outage-limit": mennanovLocal,
	},
}

// mennanovRedis holds a lock in Redis during each request, because the documentation requires one for several instances.
var mennanovRedis = library{
	name: "mennanov/limiters", slug: "mennanov-redis", module: "github.com/mennanov/limiters", store: "Redis",
	open: func(t *trial, q quota) (*limiter, error) {
		client := t.client()
		locks := goredis.NewPool(client)
		return mennanovBy(t, q, func(key string) (limiters.DistLocker, limiters.TokenBucketStateBackend) {
			return limiters.NewLockRedis(locks, "/lock/"+key), limiters.NewTokenBucketRedis(client, "/ratelimiter/"+key, q.every(), false)
		}), nil
	},
	queues: true,
	absent: []string{"several", "remaining", "outage", "outage-limit", "forged", "refund"},
	shown:  []string{"outage", "outage-limit"},
	says: map[string]quote{
		"": mennanovTakes, "wait": mennanovWait, "burst": mennanovWait, "keys": mennanovRegistry,
		"expiry":    {"TTL is the TTL of the stored keys.", "tokenbucket.go"},
		"instances": {"Precise (no over or under-limiting), but requires a lock (provided).", "README.md"},
		"outage":    mennanovFails, "outage-limit": mennanovFails,
	},
}

// mennanovBy keeps buckets in a registry, and forgets each after the time of one unit, as the documentation's example does.
func mennanovBy(t *trial, q quota, backends func(key string) (limiters.DistLocker, limiters.TokenBucketStateBackend)) *limiter {
	registry, clock := limiters.NewRegistry(), limiters.NewSystemClock()
	ctx, stop := context.WithCancel(t.ctx())
	t.owner.Cleanup(stop)
	go func() {
		for ctx.Err() == nil {
			select {
			case <-ctx.Done():
			case <-time.After(q.every()):
				registry.DeleteExpired(clock.Now())
			}
		}
	}()
	takeN := func(key string, n int) (answer, error) {
		bucket := registry.GetOrCreate(key, func() any {
			lock, backend := backends(key)
			return limiters.NewTokenBucket(int64(q.requests), q.every(), lock, backend, clock, limiters.NewStdLogger())
		}, q.every(), clock.Now()).(*limiters.TokenBucket)
		wait, err := bucket.Take(t.ctx(), int64(n))
		if errors.Is(err, limiters.ErrLimitExhausted) {
			return answer{remaining: untold, wait: wait}, nil
		}
		return answer{allowed: err == nil, remaining: untold, wait: untold}, err
	}
	return &limiter{take: func(key string) (answer, error) { return takeN(key, 1) }, takeN: takeN}
}
