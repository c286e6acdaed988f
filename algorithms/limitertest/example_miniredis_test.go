package limitertest_test

import (
	"context"
	"fmt"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/algorithms/shared"
)

// Miniredis is a Redis inside the test, whose clock the test sets. SetTime moves
// limits; FastForward moves TTLs only. FlushAll forgets all limits. PerDay and PerMonth
// follow SetTime for two periods from today; for other dates set Options.Now.
func Example_miniredis() {
	m, err := miniredis.Run() // in a test: miniredis.RunT(t)
	if err != nil {
		panic(err)
	}
	defer m.Close()
	now := time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)
	m.SetTime(now)
	rdb := redis.NewClient(&redis.Options{Addr: m.Addr()})
	defer rdb.Close()
	limiter, err := shared.New(rdb, &shared.Options{
		Views:    shared.ViewsOff,  // a denial ends when the clock says so
		Deadline: 10 * time.Second, // a busy machine is no outage
	})
	if err != nil {
		panic(err)
	}
	defer limiter.Close()
	limit := algorithms.FixedWindow(1, time.Minute)
	for range 3 {
		d, err := algorithms.Allow(context.Background(), limiter, "usr=42", limit)
		fmt.Println(d.Allowed, d.RetryAfter, d.Source, err)
		if !d.Allowed {
			now = now.Add(d.RetryAfter)
			m.SetTime(now)
		}
	}
	// Output:
	// true 0s shared <nil>
	// false 1m0s shared <nil>
	// true 0s shared <nil>
}
