// A log with the time as member: three requests of one millisecond use one unit.
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
	rdb, now, admitted := redis.NewClient(&redis.Options{Addr: "127.0.0.1:7399", MaxRetries: 20}), time.Now().UnixMilli(), 0
	for i := range int64(13) { // 3 requests of one millisecond, and then 10 of the next ones
		n, err := redis.NewScript(scripts.Text("log-time")).Run(context.Background(), rdb, []string{"client"}, 10, 3_600_000, now+max(0, i-2), "a").Int()
		if admitted += n; err != nil {
			panic(err)
		}
	}
	fmt.Println(server.Process.Kill(), "after 3 requests,", admitted-3, "of 10 were left")
	os.Exit(min(1, admitted-10)) // 1 if more than 10 in all
}
