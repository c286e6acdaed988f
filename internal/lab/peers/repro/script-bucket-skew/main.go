// A token bucket by the caller's clock: each late caller sets the time back, and the next one refills the difference again.
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
	now, admitted := time.Now().UnixMilli(), 0
	for i := range 400 {
		n, err := redis.NewScript(scripts.Text("bucket")).Run(ctx, rdb, []string{"client"}, 100, 10_000, now-int64(i%4/3)*2000, "a").Int()
		if admitted += n; err != nil {
			panic(err)
		}
	}
	fmt.Println(server.Process.Kill(), admitted, "of 400 requests of one instant were admitted at a limit of 100, with a clock of four 2 s late")
	os.Exit(min(1, max(0, admitted-110))) // 1 if more than 110
}
