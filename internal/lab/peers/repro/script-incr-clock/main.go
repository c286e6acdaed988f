// A fixed window by INCR and EXPIRE: the expiry is an instant. This is what a server whose clock was an hour ahead has stored.
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
	ahead := rdb.Set(ctx, "client", 10, time.Hour+time.Second).Err()
	time.Sleep(3 * time.Second)
	admitted, err := redis.NewScript(scripts.Text("incr")).Run(ctx, rdb, []string{"client"}, 10, 1000, time.Now().UnixMilli(), "a").Int()
	_ = server.Process.Kill()
	fmt.Println(ahead, err, "three seconds after the clock was set right, at 10 per second:", admitted, "admitted")
	if err == nil && admitted == 0 {
		os.Exit(1)
	}
}
