// krishna-kudari/ratelimit in memory: a cost of 11 at a limit of 10 never fits.
package main

import (
	"context"
	"fmt"
	"os"

	goratelimit "github.com/krishna-kudari/ratelimit"
)

func main() {
	limiter, err := goratelimit.NewInMemory(goratelimit.PerHour(10))
	if err != nil {
		panic(err)
	}
	result, err := limiter.AllowN(context.Background(), "large", 11)
	fmt.Println(err, "allowed", result.Allowed, "retry after", result.RetryAfter, "- RetryAfter tells the client exactly when to try again")
	if err == nil && !result.Allowed && result.RetryAfter > 0 {
		os.Exit(1)
	}
}
