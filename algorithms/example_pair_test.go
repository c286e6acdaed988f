// Pairs of takes: a limit that tenants share fairly, and credits after the quota of a plan.

package algorithms_test

import (
	"context"
	"fmt"
	"time"

	"github.com/penstock-go/penstock/algorithms"
)

// Ten tenants share a capacity. A tenant within its share is admitted although another has used the whole burst.
func ExampleCheck_takeReserved() {
	clock := newClock()
	limiter := algorithms.NewMemory(&algorithms.MemoryOptions{Now: clock.now})
	capacity, share := algorithms.TokenBucket(100, time.Second), algorithms.TokenBucket(10, time.Second)
	ask := func(tenant string) (allowed bool, wait time.Duration) {
		checks := []algorithms.Check{
			{Policy: "capacity~share", Key: tenant, Limit: share, Cost: 1},
			{Policy: "capacity", Key: "const=all", Limit: capacity, Cost: 1, Op: algorithms.TakeReserved},
		}
		if err := limiter.Allow(context.Background(), checks); err != nil {
			fmt.Println("could not decide:", err)
		}
		return algorithms.Allowed(checks), checks[1].Decision.RetryAfter
	}

	admitted := 0
	for range 1_000 {
		if allowed, _ := ask("usr=hog"); allowed {
			admitted++
		}
	}
	_, wait := ask("usr=hog")
	fmt.Println("the hog is admitted", admitted, "times, and then waits", wait)
	allowed, _ := ask("usr=modest")
	fmt.Println("the modest tenant:", allowed)
	// Output:
	// the hog is admitted 100 times, and then waits 10ms
	// the modest tenant: true
}

// Credits are charged only when the plan is used up.
func ExampleCheck_takeElse() {
	limiter := algorithms.NewMemory(nil)
	for range 4 {
		checks := []algorithms.Check{
			{Policy: "plan", Key: "usr=42", Limit: algorithms.PerMonth(2, nil), Cost: 1},
			{Policy: "credits", Key: "usr=42", Limit: algorithms.TokenBucket(1, 24*time.Hour), Cost: 1, Op: algorithms.TakeElse},
		}
		if err := limiter.Allow(context.Background(), checks); err != nil {
			fmt.Println("could not decide:", err)
			return
		}
		plan, credits := checks[0].Decision.Receipt.Units(), checks[1].Decision.Receipt.Units()
		fmt.Println(algorithms.Allowed(checks), "plan:", plan, "credits:", credits)
	}
	// Output:
	// true plan: 1 credits: 0
	// true plan: 1 credits: 0
	// true plan: 0 credits: 1
	// false plan: 0 credits: 0
}
