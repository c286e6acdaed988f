package main

import (
	"time"

	"github.com/RussellLuo/slidingwindow"
)

// slidingWindow is a map of limiters with local windows.
var slidingWindow = library{
	name: "RussellLuo/slidingwindow", slug: "slidingwindow", module: "github.com/RussellLuo/slidingwindow", store: "memory",
	open: func(_ *trial, q quota) (*limiter, error) {
		limiters := &perKey[*slidingwindow.Limiter]{make: func(string) *slidingwindow.Limiter {
			l, _ := slidingwindow.NewLimiter(q.window, int64(q.requests), func() (slidingwindow.Window, slidingwindow.StopFunc) {
				return slidingwindow.NewLocalWindow()
			})
			return l
		}}
		takeN := func(key string, n int) (answer, error) {
			return answer{allowed: limiters.of(key).AllowN(time.Now(), int64(n)), remaining: untold, wait: untold}, nil
		}
		return &limiter{take: func(key string) (answer, error) { return takeN(key, 1) }, takeN: takeN}, nil
	},
	absent: []string{"several", "remaining", "wait", "expiry", "instances", "outage", "outage-limit", "forged", "keys", "refund"},
	says:   map[string]quote{"": {"AllowN reports whether n events may happen at time now.", "slidingwindow.go"}},
}
