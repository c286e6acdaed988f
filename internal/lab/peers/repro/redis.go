package repro

import (
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-chi/httprate"
	httprateredis "github.com/go-chi/httprate-redis"
	"github.com/go-redis/redis_rate/v10"
	"github.com/redis/go-redis/v9"
	"github.com/throttled/throttled/v2"
	"github.com/throttled/throttled/v2/store/goredisstore.v9"
	ulule "github.com/ulule/limiter/v3"
	ululeredis "github.com/ulule/limiter/v3/drivers/store/redis"

	"github.com/penstock-go/penstock/internal/lab/nottest"
)

// Functions about clocks store what a server or a caller has stored whose clock was an hour ahead.
const hourAhead = time.Hour + time.Second

// redis_rate: README says "Output: allowed 1 remaining 9".
func redisRateRemaining(rdb *redis.Client) (string, bool) {
	res := nottest.Must(redis_rate.NewLimiter(rdb).Allow(context.Background(), "project:123", redis_rate.PerSecond(10)))
	return fmt.Sprintf("allowed %d remaining %d, README says: // Output: allowed 1 remaining 9", res.Allowed, res.Remaining), res.Remaining != 9
}

// redis_rate: a cost of 11 at a burst of 10 never fits.
func redisRateBurst(rdb *redis.Client) (string, bool) {
	res := nottest.Must(redis_rate.NewLimiter(rdb).AllowN(context.Background(), "large", redis_rate.PerHour(10), 11))
	return fmt.Sprintf("a cost of 11 at a burst of 10: allowed %d, retry after %v", res.Allowed, res.RetryAfter), res.RetryAfter > 0
}

// redis_rate: the key holds an instant.
func redisRateClock(rdb *redis.Client) (string, bool) {
	ctx, epoch := context.Background(), time.Date(2017, 1, 1, 0, 0, 0, 0, time.UTC)
	nottest.Check(rdb.Set(ctx, "rate:client", (time.Since(epoch) + hourAhead).Seconds(), time.Hour).Err())
	res := nottest.Must(redis_rate.NewLimiter(rdb).Allow(ctx, "client", redis_rate.PerSecond(10)))
	return fmt.Sprintf("allowed %d, retry after %v, at 10 per second", res.Allowed, res.RetryAfter), res.RetryAfter > time.Minute
}

// countsIn lets httprate count in Redis.
func countsIn(rdb *redis.Client) httprate.Option {
	addr := nottest.Must(netip.ParseAddrPort(rdb.Options().Addr))
	return httprateredis.WithRedisLimitCounter(&httprateredis.Config{Host: addr.Addr().String(), Port: addr.Port()})
}

// httprate-redis: a client that has used 5 per 10 s is admitted again long before Retry-After.
func httprateRedisWait(rdb *redis.Client) (string, bool) {
	h := httprate.LimitBy(5, 10*time.Second, httprate.Key("client"), countsIn(rdb))(http.NotFoundHandler())
	time.Sleep(17*time.Second - time.Since(time.Now().Truncate(10*time.Second))) // into a window of the clock
	return waitFor5s(h)
}

// httprate-redis: JoinKeys lets two clients share a count.
func httprateRedisKeys(rdb *redis.Client) (string, bool) { return httprateJoins(countsIn(rdb)) }

// httprate-redis: 16 instances share a limit of 101. Each reads the count, and raises it with another command.
func httprateRedisInstances(rdb *redis.Client) (string, bool) {
	var admitted atomic.Int64
	user := func(r *http.Request) (string, error) { return r.Header.Get("User"), nil }
	var all sync.WaitGroup
	for range 16 {
		h := httprate.LimitBy(101, time.Hour, user, countsIn(rdb))(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { admitted.Add(1) }))
		all.Go(func() {
			for n := range 20 * 20 { // 20 requests of each of 20 clients
				ask(h, "", fmt.Sprint(n/20))
			}
		})
	}
	all.Wait()
	return fmt.Sprintf("%d requests of 20 clients were admitted at 101 each", admitted.Load()), admitted.Load() > 20*101
}

// ulule/limiter: the key expires at an instant.
func ululeClock(rdb *redis.Client) (string, bool) {
	ctx := context.Background()
	nottest.Check(rdb.Set(ctx, "limiter:client", 10, hourAhead).Err())
	store := nottest.Must(ululeredis.NewStore(rdb))
	c := nottest.Must(ulule.New(store, ulule.Rate{Period: time.Second, Limit: 10}).Get(ctx, "client"))
	wait := c.Reset - time.Now().Unix()
	return fmt.Sprintf("reached %t, reset in %d s, at 10 per second", c.Reached, wait), c.Reached && wait > 60
}

// throttled: the key holds an instant.
func throttledClock(rdb *redis.Client) (string, bool) {
	ctx := context.Background()
	nottest.Check(rdb.Set(ctx, "client", time.Now().Add(hourAhead).UnixNano(), time.Hour).Err())
	store := nottest.Must(goredisstore.NewCtx(rdb, ""))
	limiter := nottest.Must(throttled.NewGCRARateLimiterCtx(store, throttled.RateQuota{MaxRate: throttled.PerSec(10), MaxBurst: 9}))
	limited, res, err := limiter.RateLimitCtx(ctx, "client", 1)
	nottest.Check(err)
	return fmt.Sprintf("limited %t, retry after %v, at 10 per second", limited, res.RetryAfter), res.RetryAfter > time.Minute
}

// throttled: VaryBy reads header fields in lower case, so clients whose names differ in case share a count.
func throttledKeys(rdb *redis.Client) (string, bool) {
	store := nottest.Must(goredisstore.NewCtx(rdb, ""))
	rate := nottest.Must(throttled.NewGCRARateLimiterCtx(store, throttled.RateQuota{MaxRate: throttled.PerHour(1)}))
	limiter := throttled.HTTPRateLimiterCtx{RateLimiter: rate, VaryBy: &throttled.VaryBy{Headers: []string{"User"}}}
	h := limiter.RateLimit(http.NotFoundHandler())
	first, second := ask(h, "", "k7fQ").Code, ask(h, "", "K7Fq").Code
	return fmt.Sprintf("first request of k7fQ: %d, first request of K7Fq: %d", first, second), second == http.StatusTooManyRequests
}
