// A token bucket in a hash that never expires: every client that ever came stays.
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
	n, err := redis.NewScript(scripts.Text("bucket-forever")).Run(ctx, rdb, []string{"client"}, 10, 1000, time.Now().UnixMilli(), "a").Int()
	expiry := rdb.PTTL(ctx, "client").Val()
	_ = server.Process.Kill()
	fmt.Println(err, n, "admitted; PTTL", expiry.Nanoseconds(), "- The command returns -1 if the key exists but has no associated expire.")
	if expiry == -1 {
		os.Exit(1)
	}
}
