// slidingwindow: a clock that was an hour ahead is set right.
package main

import (
	"fmt"
	"os"
	"time"

	"github.com/RussellLuo/slidingwindow"
)

func main() {
	window := func() (slidingwindow.Window, slidingwindow.StopFunc) { return slidingwindow.NewLocalWindow() }
	limiter, _ := slidingwindow.NewLimiter(time.Second, 10, window)
	now := time.Now()
	limiter.AllowN(now.Add(time.Hour), 10)
	for s := range 60 * time.Minute / time.Second {
		if limiter.AllowN(now.Add(s*time.Second), 1) {
			fmt.Println("admitted again after", s, "s")
			return
		}
	}
	fmt.Println("no request is admitted for an hour, at 10 per second")
	os.Exit(1)
}
