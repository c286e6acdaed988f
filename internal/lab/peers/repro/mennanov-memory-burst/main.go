// mennanov/limiters in memory: a cost of 11 at a capacity of 10 never fits.
package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/mennanov/limiters"
)

func main() {
	bucket := limiters.NewTokenBucket(10, 6*time.Minute, limiters.NewLockNoop(), limiters.NewTokenBucketInMemory(),
		limiters.NewSystemClock(), limiters.NewStdLogger())
	wait, err := bucket.Take(context.Background(), 11)
	fmt.Println(err, "- wait", wait, "- the returned duration is the amount of time to wait to retry the request.")
	if wait > 0 {
		os.Exit(1)
	}
}
