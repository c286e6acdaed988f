// Overrides as an operator would set them.

package overrides_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/algorithms/shared"
	"github.com/penstock-go/penstock/keyfunc"
	ratelimit "github.com/penstock-go/penstock/middleware"
	"github.com/penstock-go/penstock/middleware/overrides"
)

// The override of a key precedes the override of everyone.
func Example() {
	ctx, table := context.Background(), overrides.NewMemory()
	_ = table.Set(ctx, "orders", ratelimit.Everyone, ratelimit.Override{Limit: algorithms.TokenBucket(5, time.Minute)})
	_ = table.Set(ctx, "orders", "usr=42", ratelimit.Override{Limit: algorithms.TokenBucket(500, time.Minute)})
	_ = table.Set(ctx, "orders", "usr=13", ratelimit.Override{Mode: ratelimit.ModeBanned, Until: time.Now().Add(time.Hour)})

	for _, key := range []string{"usr=1", "usr=42", "usr=13"} {
		o, _ := table.Find("orders", key)
		fmt.Printf("%s %q %v\n", key, o.Mode, o.Limit.Algorithm())
	}
	// Output:
	// usr=1 "" token-bucket
	// usr=42 "" token-bucket
	// usr=13 "banned"
}

// A client gets a limit of its own while the service runs, and responses advertise it. Several instances use
// NewRedis.
func Example_advertised() {
	limiter := algorithms.NewMemory(nil)
	table := overrides.NewMemory()
	limited := ratelimit.Must(ratelimit.New(limiter, &ratelimit.Options{Overrides: table}, ratelimit.Policy{
		Name: "reports", Key: keyfunc.IP(nil), Limit: algorithms.TokenBucket(1, time.Minute),
	}))
	h := limited.Handler(http.NotFoundHandler())
	ask := func() {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
		fmt.Println(w.Code, w.Header().Get("RateLimit-Policy"))
	}

	ask()
	ask()
	ctx := context.Background()
	err := table.Set(ctx, "reports", "ip=192.0.2.1", ratelimit.Override{Limit: algorithms.TokenBucket(100, time.Minute)})
	fmt.Println(err)
	ask()
	err = table.Set(ctx, "reports", "ip=192.0.2.1", ratelimit.Override{Mode: ratelimit.ModeBanned, Until: time.Now().Add(time.Hour)})
	fmt.Println(err)
	ask()
	// Output:
	// 404 "reports";q=1;w=60
	// 429 "reports";q=1;w=60
	// <nil>
	// 404 "reports";q=100;w=60
	// <nil>
	// 429 "reports";q=1;w=60
}

// The mode of all policies is a switch for the worst case. Keys and policies with an override of their own ignore it.
func ExampleAll() {
	ctx, table := context.Background(), overrides.NewMemory()
	_ = table.Set(ctx, overrides.All, ratelimit.Everyone, ratelimit.Override{Mode: ratelimit.ModeOff})
	o, _ := table.Find("orders", "usr=1")
	fmt.Println(o.Mode)

	_ = table.Clear(ctx, overrides.All, ratelimit.Everyone)
	_, found := table.Find("orders", "usr=1")
	fmt.Println(found)
	// Output:
	// off
	// false
}

// All instances that use the same Redis see an edit within a second.
func ExampleNewRedis() {
	rdb := redis.NewClient(&redis.Options{Addr: "127.0.0.1:6379"})
	limiter := ratelimit.Must(shared.New(rdb, &shared.Options{Prefix: "shop"}))
	table := ratelimit.Must(overrides.NewRedis(rdb, limiter, nil)) // also has the prefix "shop"
	defer table.Close()

	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if err := table.Refresh(ctx); err != nil {
		fmt.Println("serving without overrides until Redis answers:", err)
	}
}

// The error reports every misconfiguration.
func ExampleMemory_Set_invalid() {
	table := overrides.NewMemory()
	fmt.Println(table.Set(context.Background(), "orders", ratelimit.Everyone, ratelimit.Override{
		Mode: ratelimit.ModeBanned, Limit: algorithms.TokenBucket(5, time.Minute),
	}))
	// Output:
	// ratelimit: invalid override of policy "orders": the mode "banned" and a limit cannot be combined
	// ratelimit: invalid override of policy "orders": a ban is for one key: to deny everyone, set the limit "nobody"
}
