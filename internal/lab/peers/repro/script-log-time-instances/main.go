// A log with the time as member: requests of one millisecond are one entry.
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
	for i := range 640 {
		n, err := redis.NewScript(scripts.Text("log-time")).Run(ctx, rdb, []string{"client"}, 100, 3_600_000, now+int64(i%50), "a").Int()
		if admitted += n; err != nil {
			panic(err)
		}
	}
	fmt.Println(server.Process.Kill(), admitted, "of 640 requests in 50 ms were admitted at a limit of 100")
	os.Exit(min(1, max(0, admitted-100))) // 1 if more than 100
}
