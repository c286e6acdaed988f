// mennanov/limiters with Redis: a cost of 11 at a capacity of 10 never fits.
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
	server := exec.Command("redis-server", "--port", "7399", "--save", "")
	if err := server.Start(); err != nil {
		panic(err)
	}
	rdb := redis.NewClient(&redis.Options{Addr: "127.0.0.1:7399", MaxRetries: 20})
	bucket := limiters.NewTokenBucket(10, 6*time.Minute, limiters.NewLockNoop(),
		limiters.NewTokenBucketRedis(rdb, "client", time.Hour, false), limiters.NewSystemClock(), limiters.NewStdLogger())
	wait, err := bucket.Take(context.Background(), 11)
	_ = server.Process.Kill()
	fmt.Println(err, "- wait", wait, "- the returned duration is the amount of time to wait to retry the request.")
	if wait > 0 {
		os.Exit(1)
	}
}
