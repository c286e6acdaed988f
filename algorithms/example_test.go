// Examples of limits, checks and Memory.

package algorithms_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/penstock-go/penstock/algorithms"
)

func Example() {
	limiter := algorithms.NewMemory(nil)

	// Several questions about one request are one decision.
	checks := []algorithms.Check{
		{Policy: "merchant", Key: "usr=42", Limit: algorithms.TokenBucket(100, time.Minute).WithBurst(2), Cost: 1},
		{Policy: "global", Key: "const=all", Limit: algorithms.FixedWindow(10_000, time.Hour), Cost: 1},
	}
	for range 3 {
		if err := limiter.Allow(context.Background(), checks); err != nil {
			fmt.Println("could not decide:", err)
			return
		}
		fmt.Println(algorithms.Allowed(checks), checks[0].Decision.Remaining, checks[1].Decision.Remaining)
	}
	// Output:
	// true 1 9999
	// true 0 9998
	// false 0 9998
}

func ExampleAllow() {
	limiter := algorithms.NewMemory(nil)

	limit := algorithms.TokenBucket(1, time.Hour).WithBurst(2)
	for range 3 {
		d, err := algorithms.Allow(context.Background(), limiter, "usr=42", limit)
		if err != nil {
			fmt.Println("could not decide:", err)
			return
		}
		fmt.Println(d.Allowed, d.Remaining, d.RetryAfter.Round(time.Minute))
	}
	// Output:
	// true 1 0s
	// true 0 0s
	// false 0 1h0m0s
}

// A cost of 0 takes nothing and returns the present figures.
func ExampleAllowN() {
	limiter := algorithms.NewMemory(nil)
	ctx, limit := context.Background(), algorithms.FixedWindow(20, time.Hour)
	for _, n := range []int64{5, 0, 16} {
		d, _ := algorithms.AllowN(ctx, limiter, "usr=42", limit, n)
		fmt.Println(d.Allowed, d.Remaining)
	}
	// Output:
	// true 15
	// true 15
	// false 15
}

// A worker takes as many jobs as its limit still allows.
func ExampleAllowUpTo() {
	limiter := algorithms.NewMemory(nil)
	ctx, limit := context.Background(), algorithms.FixedWindow(20, 24*time.Hour)
	for range 3 {
		jobs, d, _ := algorithms.AllowUpTo(ctx, limiter, "usr=42", limit, 12)
		fmt.Println(jobs, d.Allowed, d.Remaining)
	}
	// Output:
	// 12 true 8
	// 8 false 0
	// 0 false 0
}

// Four replicas without Redis admit 100 in a window together, never more.
func ExampleDivide() {
	limiter := algorithms.Divide(algorithms.NewMemory(nil), 4)
	ctx, limit := context.Background(), algorithms.FixedWindow(100, 24*time.Hour)
	taken, _, err := algorithms.AllowUpTo(ctx, limiter, "usr=42", limit, 100)
	fmt.Println(taken, err)
	// Output:
	// 25 <nil>
}

func ExampleNewMemory() {
	limiter := algorithms.NewMemory(&algorithms.MemoryOptions{MaxKeys: 100_000})
	_, _ = algorithms.Allow(context.Background(), limiter, "usr=42", algorithms.TokenBucket(60, time.Minute))
	fmt.Println(limiter.Stats().Memory.Keys)
	// Output: 1
}

// A Reset forgets the key of a user whom support has helped.
func ExampleCheck_reset() {
	limiter := algorithms.NewMemory(nil)
	ctx := context.Background()
	login := []algorithms.Check{{Policy: "login", Key: "ip=192.0.2.1", Limit: algorithms.SlidingWindowLog(1, time.Hour), Cost: 1}}
	for _, op := range []algorithms.Op{algorithms.Take, algorithms.Take, algorithms.Reset, algorithms.Take} {
		login[0].Op = op
		_ = limiter.Allow(ctx, login)
		fmt.Println(op, login[0].Decision.Allowed)
	}
	// Output:
	// take true
	// take false
	// reset true
	// take true
}

func ExampleWait() {
	limiter := algorithms.NewMemory(nil)

	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	limit := algorithms.TokenBucket(1, time.Minute)
	for range 2 {
		err := algorithms.Wait(ctx, limiter, "usr=42", limit)
		fmt.Println(errors.Is(err, context.DeadlineExceeded))
	}
	// Output:
	// false
	// true
}

func ExampleParseLimit() {
	for _, text := range []string{"60/60s burst 10", "sliding-window-log 5/1m", "nobody", "60/1y"} {
		limit, err := algorithms.ParseLimit(text)
		if err != nil {
			fmt.Println(err)
			continue
		}
		fmt.Println(limit)
	}
	// Output:
	// token-bucket 60/1m burst 10
	// sliding-window-log 5/1m
	// nobody
	// algorithms: invalid check: limit "60/1y": the window "1y" is not an integer with a unit of us, ms, s, m, h or d
}

func ExampleTokenBucket() {
	fmt.Println(algorithms.TokenBucket(60, time.Minute).WithBurst(10))
	fmt.Println(algorithms.TokenBucket(60, time.Minute).WithBurst(0).Validate())
	// Output:
	// token-bucket 60/1m burst 10
	// invalid check: limit token-bucket 60/1m burst 0: the burst must be between 1 and 1000000000
}

func ExampleLeakyBucket() {
	clock := newClock()
	limiter := algorithms.NewMemory(&algorithms.MemoryOptions{Now: clock.now})
	for range 4 {
		d, _ := algorithms.Allow(context.Background(), limiter, "usr=42", algorithms.LeakyBucket(2, time.Second).WithBurst(3))
		fmt.Println(d.Allowed, d.Delay, d.RetryAfter)
	}
	// Output:
	// true 0s 0s
	// true 500ms 0s
	// true 1s 0s
	// false 0s 500ms
}

// The cost of a request may be known only when it is done: reserve, then settle.
func ExampleCheck_settlement() {
	limiter := algorithms.NewMemory(nil)
	ctx := context.Background()
	tokens := []algorithms.Check{{Policy: "tokens", Key: "usr=42", Limit: algorithms.FixedWindow(1_000, time.Hour), Cost: 300}}
	_ = limiter.Allow(ctx, tokens)
	fmt.Println("reserved 300, left", tokens[0].Decision.Remaining)

	tokens[0].Op, tokens[0].Cost = algorithms.Return, 180 // it used only 120
	_ = limiter.Allow(ctx, tokens)
	fmt.Println("gave back 180, left", tokens[0].Decision.Remaining)

	tokens[0].Op, tokens[0].Cost = algorithms.Force, 1_500 // more than anyone could foresee
	_ = limiter.Allow(ctx, tokens)
	fmt.Println("charged 1500, left", tokens[0].Decision.Remaining)
	// Output:
	// reserved 300, left 700
	// gave back 180, left 880
	// charged 1500, left 0
}

// A shadow limit is counted and reported, and changes no decision.
func ExampleCheck_trial() {
	limiter := algorithms.NewMemory(nil)
	checks := []algorithms.Check{
		{Policy: "api", Key: "usr=42", Limit: algorithms.FixedWindow(3, time.Hour), Cost: 1},
		{Policy: "api~candidate", Key: "usr=42", Limit: algorithms.FixedWindow(2, time.Hour), Cost: 1, Op: algorithms.TrialInstead},
	}
	for range 4 {
		_ = limiter.Allow(context.Background(), checks)
		fmt.Println(algorithms.Allowed(checks), "candidate:", checks[1].Decision.Allowed)
	}
	// Output:
	// true candidate: true
	// true candidate: true
	// true candidate: false
	// false candidate: false
}
