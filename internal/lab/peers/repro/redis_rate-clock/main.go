// redis_rate: the key holds an instant. This is what a server whose clock was an hour ahead has stored.
package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"time"

	"github.com/go-redis/redis_rate/v10"
	"github.com/redis/go-redis/v9"
)

func main() {
	server := exec.Command("redis-server", "--port", "7399", "--save", "")
	if err := server.Start(); err != nil {
		panic(err)
	}
	ctx, epoch := context.Background(), time.Date(2017, 1, 1, 0, 0, 0, 0, time.UTC)
	rdb := redis.NewClient(&redis.Options{Addr: "127.0.0.1:7399", MaxRetries: 20})
	ahead := rdb.Set(ctx, "rate:client", time.Since(epoch).Seconds()+3601, time.Hour).Err()
	res, err := redis_rate.NewLimiter(rdb).Allow(ctx, "client", redis_rate.PerSecond(10))
	_ = server.Process.Kill()
	fmt.Println(ahead, err, "allowed", res.Allowed, "retry after", res.RetryAfter, "at 10 requests per second")
	if res.RetryAfter > time.Minute {
		os.Exit(1)
	}
}
