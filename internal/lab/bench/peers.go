package main

import (
	"context"
	_ "embed"
	"strconv"

	"github.com/go-redis/redis_rate/v10"
	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"
	"github.com/ulule/limiter/v3"
	ululeredis "github.com/ulule/limiter/v3/drivers/store/redis"

	"github.com/penstock-go/penstock/internal/lab/nottest"
)

// A pooled client has up to 256 connections, instead of go-redis's ten per core.
func pooled(o *redis.Options) { o.PoolSize = 256 }

// redisRate is go-redis/redis_rate. adjust may change the options of the client.
func redisRate(adjust ...func(*redis.Options)) setup {
	return func(_ context.Context, s *stage, q quota) func() take {
		l := redis_rate.NewLimiter(s.client(adjust...))
		limit := redis_rate.Limit{Rate: int(q.requests), Burst: int(q.requests), Period: q.window}
		return sameTake(func(ctx context.Context, key string) (bool, error) {
			res, err := l.Allow(ctx, key, limit)
			return err == nil && res.Allowed > 0, err
		})
	}
}

func ululeRedis(_ context.Context, s *stage, q quota) func() take {
	return ululeTakes(nottest.Must(ululeredis.NewStore(s.client())), q)
}

func ululeTakes(store limiter.Store, q quota) func() take {
	l := limiter.New(store, limiter.Rate{Period: q.window, Limit: q.requests})
	return sameTake(func(ctx context.Context, key string) (bool, error) {
		c, err := l.Get(ctx, key)
		return err == nil && !c.Reached, err
	})
}

//go:embed bucket.lua
var bucketScript string

// viaRueidis runs bucket.lua through rueidis, which pipelines the commands of
// concurrent callers by itself.
func viaRueidis(_ context.Context, s *stage, q quota) func() take {
	client := nottest.Must(rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{s.addr()}}))
	s.Cleanup(client.Close)
	script := rueidis.NewLuaScript(bucketScript)
	interval, burst := bucketArgs(q)
	return sameTake(func(ctx context.Context, key string) (bool, error) {
		reply, err := script.Exec(ctx, client, []string{"bucket:" + key}, []string{interval, burst, "1"}).AsIntSlice()
		return err == nil && reply[0] == 1, err
	})
}

// viaAutoPipeline runs bucket.lua through go-redis's experimental autopipeline, which
// gathers the commands of concurrent callers. Its documentation advises full duplex
// over a network, and the default on one machine.
func viaAutoPipeline(_ context.Context, s *stage, q quota) func() take {
	options := redis.DefaultBlockingAutoPipelineOptions()
	options.FullDuplex = s.proxy != nil
	pipeline := nottest.Must(s.client().AutoPipelineWithOptions(options))
	s.Cleanup(func() { _ = pipeline.Close() })
	script := redis.NewScript(bucketScript)
	interval, burst := bucketArgs(q)
	return sameTake(func(ctx context.Context, key string) (bool, error) {
		reply, err := script.Run(ctx, pipeline, []string{"bucket:" + key}, interval, burst, "1").Int64Slice()
		return err == nil && reply[0] == 1, err
	})
}

// bucketArgs returns the µs per unit and the µs of the burst, for bucket.lua.
func bucketArgs(q quota) (interval, burst string) {
	perUnit := max(1, q.window.Microseconds()/q.requests)
	return strconv.FormatInt(perUnit, 10), strconv.FormatInt(perUnit*q.requests, 10)
}

// sameTake gives all goroutines the same take. It is for limiters without buffers per
// caller.
func sameTake(t take) func() take { return func() take { return t } }
