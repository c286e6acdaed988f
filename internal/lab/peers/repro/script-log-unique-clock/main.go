// A log in a sorted set: entries of a clock that was an hour ahead are never older than the window.
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
	server, admitted := exec.Command("redis-server", "--port", "7399", "--save", ""), 0
	if err := server.Start(); err != nil {
		panic(err)
	}
	rdb, now := redis.NewClient(&redis.Options{Addr: "127.0.0.1:7399", MaxRetries: 20}), time.Now().UnixMilli()
	for i := range 30 { // 10 requests of the clock that is ahead, and then one every 200 ms, so the key does not expire
		now += map[bool]int64{true: 1, false: 200}[i < 10] - map[bool]int64{true: 3_600_000}[i == 10]
		n, err := redis.NewScript(scripts.Text("log-unique")).Run(context.Background(), rdb, []string{"client"}, 10, 4000, now, i).Int()
		if admitted += n; err != nil {
			panic(err)
		}
	}
	fmt.Println(server.Process.Kill(), admitted-10, "requests were admitted in the 4 s after the clock was set right, at 10 per 4 s")
	os.Exit(max(0, 11-admitted)) // 1 if none
}
