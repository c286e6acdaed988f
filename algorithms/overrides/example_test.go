// Overrides as an operator would set them.

package overrides_test

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/algorithms/overrides"
)

// What is said of a key goes before what is said of everyone.
func Example() {
	ctx, table := context.Background(), overrides.NewMemory()
	_ = table.Set(ctx, "orders", overrides.Everyone, overrides.Override{Limit: algorithms.TokenBucket(5, time.Minute)})
	_ = table.Set(ctx, "orders", "usr=42", overrides.Override{Limit: algorithms.TokenBucket(500, time.Minute)})
	_ = table.Set(ctx, "orders", "usr=13", overrides.Override{Mode: overrides.Banned, Until: time.Now().Add(time.Hour)})

	for _, key := range []string{"usr=1", "usr=42", "usr=13"} {
		o, _ := table.Find("orders", key)
		fmt.Println(key, o.Mode, o.Limit)
	}
	// Output:
	// usr=1 on token-bucket 5/1m
	// usr=42 on token-bucket 500/1m
	// usr=13 banned
}

// The mode of all policies is a switch for the worst case: nothing is limited any more, but for keys and policies that
// have an override of their own.
func ExampleAll() {
	ctx, table := context.Background(), overrides.NewMemory()
	_ = table.Set(ctx, overrides.All, overrides.Everyone, overrides.Override{Mode: overrides.Off})
	o, _ := table.Find("orders", "usr=1")
	fmt.Println(o.Mode)

	_ = table.Clear(ctx, overrides.All, overrides.Everyone)
	_, found := table.Find("orders", "usr=1")
	fmt.Println(found)
	// Output:
	// off
	// false
}

// All instances that use the same Redis see an edit within a second.
func ExampleNewRedis() {
	rdb := redis.NewClient(&redis.Options{Addr: "127.0.0.1:6379"})
	table := algorithms.Must(overrides.NewRedis(rdb, nil))
	defer table.Close()

	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if err := table.Refresh(ctx); err != nil {
		fmt.Println("serving without overrides until Redis is there:", err)
	}
}

// Mistakes are errors at once, all of them.
func ExampleMemory_Set_mistakes() {
	table := overrides.NewMemory()
	fmt.Println(table.Set(context.Background(), "orders", overrides.Everyone, overrides.Override{
		Mode: overrides.Banned, Limit: algorithms.TokenBucket(5, time.Minute),
	}))
	// Output:
	// overrides: invalid override of policy "orders": the mode banned has no limit
	// overrides: invalid override of policy "orders": a ban is of one key; the limit that denies everyone is "nobody"
}
