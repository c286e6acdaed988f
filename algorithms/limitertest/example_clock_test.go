package limitertest_test

import (
	"context"
	"fmt"
	"time"

	"github.com/penstock-go/penstock/algorithms"
)

// A Memory with a clock of your own reaches any date, such as the end of a month.
func Example_clock() {
	now := time.Date(2026, time.March, 31, 23, 59, 0, 0, time.UTC)
	limiter := algorithms.NewMemory(&algorithms.MemoryOptions{Now: func() time.Time { return now }})
	plan := algorithms.PerMonth(1, time.UTC)
	for range 2 {
		d, err := algorithms.Allow(context.Background(), limiter, "usr=42", plan)
		fmt.Println(d.Allowed, d.RetryAfter, err)
	}
	now = now.Add(time.Minute)
	d, err := algorithms.Allow(context.Background(), limiter, "usr=42", plan)
	fmt.Println(d.Allowed, d.RetryAfter, err)
	// Output:
	// true 0s <nil>
	// false 1m0s <nil>
	// true 0s <nil>
}
