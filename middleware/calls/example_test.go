package calls_test

import (
	"context"
	"fmt"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/keyfunc"
	"github.com/penstock-go/penstock/middleware"
	"github.com/penstock-go/penstock/middleware/calls"
)

// The jobs of a queue count for the customers who sent them, together with their requests over HTTP.
func ExampleAllow() {
	limited := ratelimit.Must(ratelimit.New(algorithms.NewMemory(nil), nil, ratelimit.Policy{
		Name: "jobs", Key: keyfunc.APIKey("X-API-Key", lookup), Limit: algorithms.FixedWindow(2, 24*time.Hour),
	}))
	for range 3 {
		v, err := calls.Allow(context.Background(), limited, calls.Call{Identity: keyfunc.Identity{ID: "42"}})
		fmt.Println(v.Allowed, v.Status, err)
	}
	// Output:
	// true 0 <nil>
	// true 0 <nil>
	// false 429 <nil>
}
