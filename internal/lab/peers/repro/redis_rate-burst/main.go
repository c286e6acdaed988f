// redis_rate: a cost of 11 at a burst of 10 never fits.
package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"

	"github.com/go-redis/redis_rate/v10"
	"github.com/redis/go-redis/v9"
)

func main() {
	server := exec.Command("redis-server", "--port", "7399", "--save", "")
	if err := server.Start(); err != nil {
		panic(err)
	}
	rdb := redis.NewClient(&redis.Options{Addr: "127.0.0.1:7399", MaxRetries: 20})
	res, err := redis_rate.NewLimiter(rdb).AllowN(context.Background(), "large", redis_rate.PerHour(10), 11)
	_ = server.Process.Kill()
	if err != nil {
		panic(err)
	}
	fmt.Println("allowed", res.Allowed, "retry after", res.RetryAfter, "- RetryAfter is the time until the next request will be permitted.")
	if res.RetryAfter > 0 {
		os.Exit(1)
	}
}
