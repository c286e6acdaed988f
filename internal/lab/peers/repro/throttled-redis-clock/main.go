// throttled with Redis: the key holds an instant. This is what a server whose clock was an hour ahead has stored.
package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/throttled/throttled/v2"
	"github.com/throttled/throttled/v2/store/goredisstore.v9"
)

func main() {
	server := exec.Command("redis-server", "--port", "7399", "--save", "")
	startFailed, ctx := server.Start(), context.Background()
	rdb := redis.NewClient(&redis.Options{Addr: "127.0.0.1:7399", MaxRetries: 20})
	ahead := rdb.Set(ctx, "client", time.Now().Add(time.Hour+time.Second).UnixNano(), time.Hour).Err()
	store, _ := goredisstore.NewCtx(rdb, "")
	limiter, _ := throttled.NewGCRARateLimiterCtx(store, throttled.RateQuota{MaxRate: throttled.PerSec(10), MaxBurst: 9})
	limited, res, err := limiter.RateLimitCtx(ctx, "client", 1)
	fmt.Println(startFailed, ahead, err, server.Process.Kill(), "limited", limited, "retry after", res.RetryAfter, "at 10 requests per second")
	if res.RetryAfter > time.Minute {
		os.Exit(1)
	}
}
