//go:build steps

// mennanov/limiters in memory: a clock steps back an hour. Run: go run ./peers -stepped mennanov-memory-clock
package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/mennanov/limiters"
)

func main() {
	bucket := limiters.NewTokenBucket(10, 100*time.Millisecond, limiters.NewLockNoop(), limiters.NewTokenBucketInMemory(),
		limiters.NewSystemClock(), limiters.NewStdLogger())
	for range 11 {
		_, _ = bucket.Limit(context.Background())
	}
	time.SetStep(-3600)
	time.Sleep(5 * time.Second)
	_, err := bucket.Limit(context.Background())
	fmt.Println("5 s after the step, at 10 per second:", err)
	if err != nil {
		os.Exit(1)
	}
}
