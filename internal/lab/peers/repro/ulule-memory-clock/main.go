//go:build steps

// ulule/limiter in memory: a clock steps back an hour. Run: go run ./peers -stepped ulule-memory-clock
package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/ulule/limiter/v3"
	"github.com/ulule/limiter/v3/drivers/store/memory"
)

func main() {
	l := limiter.New(memory.NewStore(), limiter.Rate{Period: time.Second, Limit: 10})
	for range 11 {
		_, _ = l.Get(context.Background(), "client")
	}
	time.SetStep(-3600)
	time.Sleep(5 * time.Second)
	c, err := l.Get(context.Background(), "client")
	fmt.Println("5 s after the step, at 10 per second: reached", c.Reached, "reset in", c.Reset-time.Now().Unix(), "s", err)
	if c.Reached {
		os.Exit(1)
	}
}
