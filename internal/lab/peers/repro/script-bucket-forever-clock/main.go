// A token bucket in a hash: after a clock that was an hour ahead nothing is refilled for an hour.
package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"time"

	"github.com/penstock-go/penstock/internal/lab/peers/scripts"
	"github.com/redis/go-redis/v9"
)

func main() {
	server := exec.Command("redis-server", "--port", "7399", "--save", "")
	if err := server.Start(); err != nil {
		panic(err)
	}
	ctx, rdb := context.Background(), redis.NewClient(&redis.Options{Addr: "127.0.0.1:7399", MaxRetries: 20})
	ahead, admitted := time.Now().Add(time.Hour).UnixMilli(), 0
	for i := range int64(1810) { // 10 requests of the clock that is ahead, and then one every second for half an hour
		now := ahead + i - map[bool]int64{true: 3_600_000 - i*1000}[i >= 10]
		n, err := redis.NewScript(scripts.Text("bucket-forever")).Run(ctx, rdb, []string{"client"}, 10, 1000, now, "a").Int()
		admitted += n + map[bool]int{true: 1_000_000}[err != nil]
	}
	fmt.Println(server.Process.Kill(), admitted-10, "requests were admitted in half an hour, at 10 per second")
	os.Exit(max(0, 11-admitted)) // 1 if none
}
