// Examples of the shared limiter. No Redis listens at the address of most of them, so their output shows an outage.

package shared_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/algorithms/shared"
	"github.com/penstock-go/penstock/middleware"
)

func ExampleNew() {
	rdb := redis.NewClient(&redis.Options{Addr: "127.0.0.1:6379"})
	defer rdb.Close()
	limiter, err := shared.New(rdb, &shared.Options{Prefix: "shop", Deadline: 20 * time.Millisecond})
	if err != nil {
		log.Fatal(err)
	}
	defer limiter.Close()

	limit := algorithms.TokenBucket(60, time.Minute).WithBurst(10)
	d, err := algorithms.Allow(context.Background(), limiter, "usr=42", limit)
	switch {
	case err != nil:
		fmt.Println("could not decide:", err) // not a denial
	case !d.Allowed:
		fmt.Println("come back in", d.RetryAfter)
	default:
		fmt.Println("left:", d.Remaining)
	}
}

// New names every misconfiguration at once.
func ExampleNew_misconfigured() {
	rdb := redis.NewClient(&redis.Options{Addr: "127.0.0.1:6379"})
	defer rdb.Close()
	_, err := shared.New(rdb, &shared.Options{
		Prefix:    "{shop}",
		Instances: -1,
	})
	fmt.Println(err)
	// Output:
	// shared: Prefix is "{shop}"; want at most 64 bytes of printable ASCII without spaces and braces
	// shared: Instances is -1; want at most 100000, or 0 for 1
}

// While Redis is down, each of four instances admits a quarter of a limit.
func ExampleNew_outage() {
	rdb := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1", DialerRetries: 1})
	defer rdb.Close()
	limiter := ratelimit.Must(shared.New(rdb, &shared.Options{
		Instances: 4, // until Redis can count them
		Logger:    slog.New(slog.DiscardHandler),
	}))
	defer limiter.Close()
	for range 4 {
		d, err := algorithms.Allow(context.Background(), limiter, "usr=42", algorithms.TokenBucket(12, time.Minute))
		fmt.Println(d.Allowed, d.Source, err)
	}
	// Output:
	// true local <nil>
	// true local <nil>
	// true local <nil>
	// false local <nil>
}

// A check that must not pass without Redis fails closed.
func ExampleLimiter_Allow_failClosed() {
	rdb := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1", DialerRetries: 1})
	defer rdb.Close()
	limiter := ratelimit.Must(shared.New(rdb, &shared.Options{Logger: slog.New(slog.DiscardHandler)}))
	defer limiter.Close()
	err := limiter.Allow(context.Background(), []algorithms.Check{{
		Policy: "payments", Key: "usr=42", Limit: algorithms.SlidingWindowLog(3, time.Hour), Cost: 1,
		Fail: algorithms.FailClosed,
	}})
	fmt.Println(errors.Is(err, algorithms.ErrUnavailable))
	// Output: true
}

// A misconfiguration ends the program at its start. An outage does not: limits of
// this instance alone apply until Redis is back.
func ExampleLimiter_Ready() {
	rdb := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1", DialerRetries: 1})
	defer rdb.Close()
	limiter := ratelimit.Must(shared.New(rdb, &shared.Options{Logger: slog.New(slog.DiscardHandler)}))
	defer limiter.Close()
	err := limiter.Ready(context.Background())
	switch {
	case errors.Is(err, shared.ErrMisconfigured):
		log.Fatal(err) // a wrong password, a missing permission; the error has advice
	case err != nil:
		fmt.Println("starting without Redis:", shared.Reason(err))
	}
	// Output: starting without Redis: unavailable
}

func ExampleLimiter_Close() {
	rdb := redis.NewClient(&redis.Options{Addr: "127.0.0.1:6379"})
	defer rdb.Close()
	limiter := ratelimit.Must(shared.New(rdb, nil))
	fmt.Println(limiter.Close(), limiter.Close()) // before the client's Close
	// Output: <nil> <nil>
}

func ExampleLimiter_Stats() {
	rdb := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1", DialerRetries: 1})
	defer rdb.Close()
	limiter := ratelimit.Must(shared.New(rdb, &shared.Options{Logger: slog.New(slog.DiscardHandler)}))
	defer limiter.Close()
	for range 3 {
		_, _ = algorithms.Allow(context.Background(), limiter, "usr=42", algorithms.PerDay(1_000, nil))
	}
	s := limiter.Stats()
	fmt.Println("decided here:", s.Fallback.Local, "denied from memory:", s.Views.Denied)
	// Output: decided here: 3 denied from memory: 0
}

// Operators find the state of a client under its stored key.
func ExampleLimiter_StoredKey() {
	rdb := redis.NewClient(&redis.Options{Addr: "127.0.0.1:6379"})
	defer rdb.Close()
	limiter := ratelimit.Must(shared.New(rdb, &shared.Options{Prefix: "shop"}))
	defer limiter.Close()
	fmt.Println(limiter.StoredKey(algorithms.Check{
		Policy: "orders", Key: "usr=42|rt=POST%20/orders", Limit: algorithms.TokenBucket(60, time.Minute),
	}))
	// Output: shop:{usr=42}|rt=POST%20/orders:orders:tb
}

// Reason names an error in a word, for metrics.
func ExampleReason() {
	_, err := algorithms.Allow(context.Background(), algorithms.NewMemory(nil), "", algorithms.Nobody()) // no key
	fmt.Println(shared.Reason(err))
	fmt.Println(shared.Reason(fmt.Errorf("checkout: %w", context.Canceled)))
	// Output:
	// internal
	// cancelled
}
