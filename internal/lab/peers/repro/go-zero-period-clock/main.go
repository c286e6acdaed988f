// go-zero's PeriodLimit: the key expires at an instant. This is what a server whose clock was an hour ahead has left.
package main

import (
	"fmt"
	"os"
	"os/exec"
	"time"

	"github.com/zeromicro/go-zero/core/limit"
	"github.com/zeromicro/go-zero/core/stores/redis"
)

func main() {
	server := exec.Command("redis-server", "--port", "7399", "--save", "")
	startFailed := server.Start()
	time.Sleep(time.Second)
	store, err := redis.NewRedis(redis.RedisConf{Host: "127.0.0.1:7399", Type: redis.NodeType})
	ahead := store.Setex("period:client", "10", 3601)
	l := limit.NewPeriodLimit(1, 10, store, "period:")
	time.Sleep(5 * time.Second)
	state, failed := l.Take("client")
	fmt.Println(startFailed, err, ahead, failed, server.Process.Kill(), "over the quota of 10 per second after 5 s:", state == limit.OverQuota)
	if state == limit.OverQuota {
		os.Exit(1)
	}
}
