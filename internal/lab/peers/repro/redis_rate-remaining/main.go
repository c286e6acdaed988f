// redis_rate: Remaining after the first request of 10 per second, as in the example of its README.
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
	res, err := redis_rate.NewLimiter(rdb).Allow(context.Background(), "project:123", redis_rate.PerSecond(10))
	_ = server.Process.Kill()
	if err != nil {
		panic(err)
	}
	fmt.Println("allowed", res.Allowed, "remaining", res.Remaining, "- README says: // Output: allowed 1 remaining 9")
	if res.Remaining != 9 {
		os.Exit(1)
	}
}
