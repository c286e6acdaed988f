package algorithms_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/penstock-go/penstock/algorithms"
)

func Example() {
	limiter := algorithms.Must(algorithms.NewMemory(nil))
	defer limiter.Close()

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
	limiter := algorithms.Must(algorithms.NewMemory(nil))
	defer limiter.Close()

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

func ExamplePeek() {
	limiter := algorithms.Must(algorithms.NewMemory(nil))
	defer limiter.Close()
	ctx, limit := context.Background(), algorithms.FixedWindow(20, time.Hour)

	_, _ = algorithms.Allow(ctx, limiter, "usr=42", limit)
	for range 2 {
		d, _ := algorithms.Peek(ctx, limiter, "usr=42", limit)
		fmt.Println(d.Remaining)
	}
	_ = algorithms.Forget(ctx, limiter, "usr=42", limit)
	d, _ := algorithms.Peek(ctx, limiter, "usr=42", limit)
	fmt.Println(d.Remaining)
	// Output:
	// 19
	// 19
	// 20
}

func ExampleForget() {
	limiter := algorithms.Must(algorithms.NewMemory(nil))
	defer limiter.Close()
	ctx, limit := context.Background(), algorithms.SlidingWindowLog(1, time.Hour)

	_, _ = algorithms.Allow(ctx, limiter, "ip=192.0.2.1", limit)
	if err := algorithms.Forget(ctx, limiter, "ip=192.0.2.1", limit); err != nil {
		fmt.Println(err)
	}
	d, _ := algorithms.Allow(ctx, limiter, "ip=192.0.2.1", limit)
	fmt.Println(d.Allowed)
	// Output: true
}

func ExampleWait() {
	limiter := algorithms.Must(algorithms.NewMemory(nil))
	defer limiter.Close()

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

func ExampleNewMemory() {
	limiter, err := algorithms.NewMemory(&algorithms.MemoryOptions{
		MaxKeys: 100_000,
		Observe: func(e algorithms.Event) { fmt.Println(e.Kind, e.Policy) },
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer limiter.Close()
	_, _ = algorithms.Allow(context.Background(), limiter, "usr=42", algorithms.TokenBucket(60, time.Minute))
	fmt.Println(limiter.Stats().Keys)
	// Output: 1
}

func ExampleNewRedis() {
	rdb := redis.NewClient(&redis.Options{Addr: "127.0.0.1:6379"})
	defer rdb.Close()
	limiter, err := algorithms.NewRedis(rdb, &algorithms.RedisOptions{Prefix: "shop"})
	if err != nil {
		fmt.Println(err)
		return
	}
	// The call ends at this deadline, whatever rdb's timeouts are.
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	d, err := algorithms.Allow(ctx, limiter, "usr=42", algorithms.TokenBucket(60, time.Minute).WithBurst(10))
	switch {
	case err != nil:
		fmt.Println("could not decide:", err) // this is not a denial
	case !d.Allowed:
		fmt.Println("come back in", d.RetryAfter)
	default:
		fmt.Println("left:", d.Remaining)
	}
}

// A mistake in the configuration ends the program at its start; a Redis that is
// only down for now does not.
func ExampleRedis_Ready() {
	rdb := redis.NewClient(&redis.Options{Addr: "127.0.0.1:6379"})
	defer rdb.Close()
	limiter := algorithms.Must(algorithms.NewRedis(rdb, nil))
	if err := limiter.Ready(context.Background()); algorithms.Classify(err) == algorithms.ErrorConfiguration {
		panic(err)
	}
}

func ExampleClassify() {
	limiter := algorithms.Must(algorithms.NewMemory(nil))
	defer limiter.Close()
	_, err := algorithms.Allow(context.Background(), limiter, "", algorithms.Nobody()) // no key
	fmt.Println(algorithms.Classify(err))
	fmt.Println(algorithms.Classify(fmt.Errorf("checkout: %w", context.Canceled)))
	// Output:
	// internal
	// cancelled
}

func ExampleNewShared() {
	rdb := redis.NewClient(&redis.Options{Addr: "127.0.0.1:6379"})
	defer rdb.Close()
	limiter, err := algorithms.NewShared(rdb, &algorithms.Options{
		Redis:         algorithms.RedisOptions{Prefix: "shop"},
		DenyCacheKeys: 10_000,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer limiter.Close()
	fmt.Println(limiter.Stats().Denied)
	// Output: 0
}

// The parts of NewShared can be had one by one: here without its memory of
// denials. Nobody answers at this address, so this process decides alone.
func ExampleNewFallback() {
	rdb := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1", DialerRetries: 1})
	defer rdb.Close()
	memory := algorithms.Must(algorithms.NewMemory(nil))
	defer memory.Close()
	limiter, err := algorithms.NewFallback(algorithms.Must(algorithms.NewRedis(rdb, nil)), memory,
		&algorithms.FallbackOptions{Instances: 4}) // until Redis says how many there are
	if err != nil {
		fmt.Println(err)
		return
	}
	defer limiter.Close()
	for range 4 {
		d, err := algorithms.Allow(context.Background(), limiter, "usr=42", algorithms.TokenBucket(12, time.Minute))
		fmt.Println(d.Allowed, d.Source, err) // a quarter of the limit
	}
	// Output:
	// true local <nil>
	// true local <nil>
	// true local <nil>
	// false local <nil>
}

// One limit for everybody makes one hot key. Leases spare Redis most of it.
func ExampleLeaseOptions() {
	rdb := redis.NewClient(&redis.Options{Addr: "127.0.0.1:6379"})
	defer rdb.Close()
	limiter, err := algorithms.NewShared(rdb, &algorithms.Options{
		Lease: &algorithms.LeaseOptions{Policies: []string{"global"}, Share: 5},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer limiter.Close() // gives back what is on lease
	fmt.Printf("%+v\n", limiter.Stats().Lease)
	// Output: {Keys:0 Units:0 Blocks:0 Leased:0 Spent:0 Returned:0 Lost:0}
}

func ExampleStack_Close() {
	rdb := redis.NewClient(&redis.Options{Addr: "127.0.0.1:6379"})
	defer rdb.Close()
	limiter := algorithms.Must(algorithms.NewShared(rdb, nil))
	fmt.Println(limiter.Close(), limiter.Close()) // without leases there is nothing to give back
	// Output: <nil> <nil>
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
	limiter := algorithms.Must(algorithms.NewMemory(&algorithms.MemoryOptions{Now: clock.now}))
	defer limiter.Close()
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

// What a request really costs is known when it is done: reserve, then settle.
func ExampleCheck_settlement() {
	limiter := algorithms.Must(algorithms.NewMemory(nil))
	defer limiter.Close()
	ctx := context.Background()
	tokens := []algorithms.Check{{Policy: "tokens", Key: "usr=42", Limit: algorithms.FixedWindow(1_000, time.Hour), Cost: 300}}
	_ = limiter.Allow(ctx, tokens)
	fmt.Println("reserved 300, left", tokens[0].Decision.Remaining)

	tokens[0].Op, tokens[0].Cost = algorithms.Return, 180 // it used only 120
	_ = limiter.Allow(ctx, tokens)
	fmt.Println("gave back 180, left", tokens[0].Decision.Remaining)

	tokens[0].Op, tokens[0].Cost = algorithms.Force, 1_500 // this one nobody could foresee
	_ = limiter.Allow(ctx, tokens)
	fmt.Println("charged 1500, left", tokens[0].Decision.Remaining)
	// Output:
	// reserved 300, left 700
	// gave back 180, left 880
	// charged 1500, left 0
}

// A shadow limit is counted and reported, and changes nothing for anybody.
func ExampleCheck_trial() {
	limiter := algorithms.Must(algorithms.NewMemory(nil))
	defer limiter.Close()
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
