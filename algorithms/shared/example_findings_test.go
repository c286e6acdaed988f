// Findings about Redis, as a program would log them.

package shared_test

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/penstock-go/penstock/algorithms/shared"
	"github.com/penstock-go/penstock/middleware"
)

// Findings looks at the client, and at Redis when Redis can be asked. Here
// nothing listens at the address.
func ExampleLimiter_Findings() {
	rdb := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1", ReadTimeout: 20 * time.Millisecond, DialerRetries: 1})
	defer rdb.Close()
	limiter := ratelimit.Must(shared.New(rdb, nil))
	defer limiter.Close()
	for _, f := range limiter.Findings(context.Background()) {
		fmt.Printf("%s: %s\n%s\n", f.Code, f.Sentence, f.Remedy)
	}
	// Output:
	// PS203: The client gives up before the limiter does: its ReadTimeout of 20ms is shorter than the deadline of 50ms.
	// Make the client's timeouts longer than Options.Deadline, e.g. 500ms. The limiter keeps its deadline by itself.
}
