// Findings about Redis, as a program would log them.

package shared_test

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/redis/go-redis/v9"

	"github.com/penstock-go/penstock/algorithms/shared"
	"github.com/penstock-go/penstock/middleware"
)

// Findings asks Redis. Here nothing listens at the address, so there is no
// finding. For a Redis with maxmemory 1gb and maxmemory-policy allkeys-lru, this
// prints the code PS201, the problem and its remedy.
func ExampleLimiter_Findings() {
	rdb := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1", DialerRetries: 1})
	defer rdb.Close()
	limiter := ratelimit.Must(shared.New(rdb, &shared.Options{Logger: slog.New(slog.DiscardHandler)}))
	defer limiter.Close()
	for _, f := range limiter.Findings(context.Background()) {
		fmt.Printf("%s: %s\n%s\n", f.Code, f.Sentence, f.Remedy)
	}
	// Output:
}
