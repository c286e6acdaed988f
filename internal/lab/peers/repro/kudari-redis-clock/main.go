// krishna-kudari/ratelimit with Redis: the key expires at an instant. This is what a server whose clock was an hour ahead
// has left.
package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"time"

	goratelimit "github.com/krishna-kudari/ratelimit"
	"github.com/redis/go-redis/v9"
)

func main() {
	server, ctx := exec.Command("redis-server", "--port", "7399", "--save", ""), context.Background()
	startFailed := server.Start()
	rdb := redis.NewClient(&redis.Options{Addr: "127.0.0.1:7399", MaxRetries: 20})
	ahead := rdb.Set(ctx, "ratelimit:client", 10, time.Hour+time.Second).Err()
	limiter, err := goratelimit.NewFixedWindow(10, 1, goratelimit.WithRedis(rdb), goratelimit.WithFailOpen(false))
	result, failed := limiter.Allow(ctx, "client")
	fmt.Println(startFailed, ahead, err, failed, server.Process.Kill(), "allowed", result.Allowed, "retry after", result.RetryAfter, "at 10 per second")
	if failed == nil && !result.Allowed && result.RetryAfter > time.Minute {
		os.Exit(1)
	}
}
