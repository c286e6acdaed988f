//go:build steps

// mennanov/limiters with Redis: the state holds an instant. Run: go run ./peers -stepped mennanov-redis-clock
package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"time"

	"github.com/mennanov/limiters"
	"github.com/redis/go-redis/v9"
)

func main() {
	server, ctx := exec.Command("redis-server", "--port", "7399", "--save", ""), context.Background()
	startFailed := server.Start()
	rdb := redis.NewClient(&redis.Options{Addr: "127.0.0.1:7399", MaxRetries: 20})
	state := limiters.NewTokenBucketRedis(rdb, "client", time.Hour, false)
	bucket := limiters.NewTokenBucket(10, 100*time.Millisecond, limiters.NewLockNoop(), state, limiters.NewSystemClock(), limiters.NewStdLogger())
	_, failed := bucket.Take(ctx, 10)
	time.SetStep(-3600)
	time.Sleep(5 * time.Second)
	if _, err := bucket.Limit(ctx); failed == nil && server.Process.Kill() == nil && err != nil {
		fmt.Println(startFailed, "5 s after the step, at 10 per second:", err)
		os.Exit(1)
	}
}
