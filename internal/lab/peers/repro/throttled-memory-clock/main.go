// throttled in memory: a clock that was an hour ahead is set right. The store's own SetTimeNow sets its clock.
package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/throttled/throttled/v2"
	"github.com/throttled/throttled/v2/store/memstore"
)

func main() {
	store, _ := memstore.New(65536)
	limiter, _ := throttled.NewGCRARateLimiterCtx(throttled.WrapStoreWithContext(store), throttled.RateQuota{MaxRate: throttled.PerSec(10), MaxBurst: 9})
	now := time.Now().Add(time.Hour)
	store.SetTimeNow(func() time.Time { return now })
	for range 10 {
		_, _, _ = limiter.RateLimitCtx(context.Background(), "client", 1)
	}
	now = now.Add(-time.Hour)
	limited, res, err := limiter.RateLimitCtx(context.Background(), "client", 1)
	fmt.Println(err, "limited", limited, "retry after", res.RetryAfter, "at 10 requests per second")
	if res.RetryAfter > time.Minute {
		os.Exit(1)
	}
}
