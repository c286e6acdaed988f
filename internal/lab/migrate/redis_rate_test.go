package migrate

import (
	"net/http"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/go-redis/redis_rate/v10"
	"github.com/redis/go-redis/v9"

	"github.com/penstock-go/penstock/algorithms/shared"
	"github.com/penstock-go/penstock/internal/redistest"
)

// TestRedisRate sends a trace with pauses to miniredis, whose clock the test sets, and one without to redis-server.
func TestRedisRate(t *testing.T) {
	t.Parallel()
	m, now := miniredis.RunT(t), time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	m.SetTime(now)
	wait := func(d time.Duration) func() {
		return func() { now = now.Add(d); m.SetTime(now); m.FastForward(d) }
	}
	acme := http.Header{"X-Project": {"acme"}}
	rdb := redis.NewClient(&redis.Options{Addr: m.Addr()})
	defer func() { _ = rdb.Close() }()
	lines := compare(t, redisRateBefore(order, redis_rate.NewLimiter(rdb)), redisRateAfter(order, newShared(t, rdb, shared.ViewsOff)),
		[]row{
			denied,
			{"redis_rate leaves all fields to the program; penstock writes those of `Options.Headers`", "`RateLimit-Limit`", []string{"Ratelimit-Limit", "Ratelimit-Policy", "Ratelimit-Reset"}},
			{"redis_rate tells all workers of a project one instant; penstock tells each further denial the next free one", "`Retry-After` of a second denial", []string{"Retry-After"}},
		},
		[]step{
			{header: acme, send: 10},
			{header: acme},
			{header: acme, before: wait(5 * time.Second)},
			{header: acme, before: wait(time.Second)}, // both admit one
			{header: acme},
			{header: acme, before: wait(30 * time.Second), send: 5},
			{header: acme},
			{header: acme, before: wait(time.Hour), send: 10},
			{rows: []row{
				{"The program counts all requests without a project under one key; penstock refuses them", "status without `X-Project`", []string{"status"}},
			}},
		})
	wantTable(t, "redis_rate", append(lines, redisRateFails(t, acme)...))
}

func redisRateFails(t *testing.T, acme http.Header) []string {
	server := redistest.Start(t)
	timed := []row{{"", "", []string{"Retry-After", "Content-Type", "body", "Cache-Control", "X-Content-Type-Options", "Ratelimit-Limit", "Ratelimit-Policy", "Ratelimit-Reset"}}}
	rdb := server.Client()
	return compare(t, redisRateBefore(order, redis_rate.NewLimiter(rdb)), redisRateAfter(order, newShared(t, rdb, 0)), timed, []step{
		{header: acme, send: 3},
		{header: acme, before: server.Kill, rows: []row{
			{"While Redis is down, redis_rate returns an error; penstock counts in memory, or as `Policy.Fail` says", "status", []string{"status"}},
		}},
	})
}
