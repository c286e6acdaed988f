// ulule/limiter with Redis: the key expires at an instant. This is what a server whose clock was an hour ahead has left.
package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/ulule/limiter/v3"
	store "github.com/ulule/limiter/v3/drivers/store/redis"
)

func main() {
	server := exec.Command("redis-server", "--port", "7399", "--save", "")
	startFailed, ctx := server.Start(), context.Background()
	rdb := redis.NewClient(&redis.Options{Addr: "127.0.0.1:7399", MaxRetries: 20})
	ahead := rdb.Set(ctx, "limiter:client", 10, time.Hour+time.Second).Err()
	s, err := store.NewStore(rdb)
	c, failed := limiter.New(s, limiter.Rate{Period: time.Second, Limit: 10}).Get(ctx, "client")
	wait := c.Reset - time.Now().Unix()
	fmt.Println(startFailed, ahead, err, failed, server.Process.Kill(), "reached", c.Reached, "reset in", wait, "s at 10 per second")
	if c.Reached && wait > 60 {
		os.Exit(1)
	}
}
