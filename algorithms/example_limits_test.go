// Each limit, and what it admits.

package algorithms_test

import (
	"context"
	"fmt"
	"time"

	"github.com/penstock-go/penstock/algorithms"
)

func ExamplePerMonth() {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		fmt.Println(err)
		return
	}
	clock := newClock() // 21 November, 13:50:30 in Berlin
	limiter := algorithms.NewMemory(&algorithms.MemoryOptions{Now: clock.now})
	for _, limit := range []algorithms.Limit{algorithms.PerDay(500, nil), algorithms.PerDay(500, berlin), algorithms.PerMonth(10_000, berlin)} {
		d, _ := algorithms.Allow(context.Background(), limiter, limit.String(), limit)
		fmt.Println(limit, "left:", d.Remaining, "until:", clock.now().Add(d.ResetAfter).In(berlin).Format("2 January 15:04"))
	}
	// Output:
	// calendar-window 500/day left: 499 until: 22 November 01:00
	// calendar-window 500/day Europe/Berlin left: 499 until: 22 November 00:00
	// calendar-window 10000/month Europe/Berlin left: 9999 until: 1 December 00:00
}

// A week turns where its users expect it. A FixedWindow of seven days would turn on Thursday.
func ExamplePerWeek() {
	fmt.Println(algorithms.PerWeek(40, time.UTC, time.Monday))
	fmt.Println(algorithms.PerWeek(40, time.UTC, time.Sunday))
	// Output:
	// calendar-window 40/week
	// calendar-window 40/week-sunday
}

func ExamplePerDay() {
	fmt.Println(algorithms.PerDay(500, time.UTC))
	fmt.Println(algorithms.PerDay(500, time.FixedZone("Mars", 88_775)).Validate())
	// Output:
	// calendar-window 500/day
	// invalid check: limit calendar-window 500/day Mars: there is no time zone "Mars" that has this name everywhere; use one that time.LoadLocation finds
}

// Take when the request begins, renew while it runs, return when it ends.
func ExampleConcurrent() {
	clock := newClock()
	limiter := algorithms.NewMemory(&algorithms.MemoryOptions{Now: clock.now})
	ctx := context.Background()

	stream := func(name string, chunks int) {
		held := []algorithms.Check{{Policy: "streams", Key: "usr=42", Limit: algorithms.Concurrent(1, 30*time.Second), Cost: 1}}
		if err := limiter.Allow(ctx, held); err != nil || !algorithms.Allowed(held) {
			fmt.Println(name, "has to wait at most", held[0].Decision.RetryAfter)
			return
		}
		defer func() {
			held[0].Op = algorithms.Return
			_ = limiter.Allow(context.WithoutCancel(ctx), held) // also when the client has gone
		}()
		for range chunks {
			clock.add(20 * time.Second) // a chunk is sent
			held[0].Op = algorithms.Renew
			_ = limiter.Allow(ctx, held)
		}
		fmt.Println(name, "has run for", 20*chunks, "s")
	}
	stream("the first", 3)
	stream("the second", 1)

	dies := []algorithms.Check{{Policy: "streams", Key: "usr=42", Limit: algorithms.Concurrent(1, 30*time.Second), Cost: 1}}
	_ = limiter.Allow(ctx, dies)
	clock.add(10 * time.Second)
	stream("the third", 1)
	clock.add(20 * time.Second)
	stream("the fourth", 0)
	// Output:
	// the first has run for 60 s
	// the second has run for 20 s
	// the third has to wait at most 20s
	// the fourth has run for 0 s
}

// Twice the limit within a second: a fixed window forgets when the clock's minute turns.
func ExampleFixedWindow() {
	fmt.Println("fixed window:", aroundTheTurn(algorithms.FixedWindow(10, time.Minute)))
	// Output: fixed window: 20
}

// The part of the previous window that overlaps with the last minute still counts.
func ExampleSlidingWindowCounter() {
	fmt.Println("sliding window counter:", aroundTheTurn(algorithms.SlidingWindowCounter(10, time.Minute)))
	// Output: sliding window counter: 10
}

// Never more than ten in any minute, for the price of an entry per request.
func ExampleSlidingWindowLog() {
	fmt.Println("sliding window log:", aroundTheTurn(algorithms.SlidingWindowLog(10, time.Minute)))
	// Output: sliding window log: 10
}

// aroundTheTurn returns how many of twenty requests a limit admits. Ten come just before the clock's minute turns, and
// ten just after.
func aroundTheTurn(limit algorithms.Limit) (admitted int) {
	clock := newClock()
	limiter := algorithms.NewMemory(&algorithms.MemoryOptions{Now: clock.now})
	clock.add(clock.now().Truncate(time.Minute).Add(time.Minute).Sub(clock.now()) - 500*time.Millisecond)
	for range 2 {
		for range 10 {
			if d, _ := algorithms.Allow(context.Background(), limiter, "usr=42", limit); d.Allowed {
				admitted++
			}
		}
		clock.add(time.Second)
	}
	return admitted
}

// Nobody denies a tier or a key always.
func ExampleNobody() {
	limiter := algorithms.NewMemory(nil)
	d, _ := algorithms.Allow(context.Background(), limiter, "usr=42", algorithms.Nobody())
	fmt.Println(d.Allowed, d.RetryAfter == algorithms.Never)
	// Output: false true
}
