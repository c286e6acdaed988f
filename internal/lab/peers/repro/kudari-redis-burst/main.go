// krishna-kudari/ratelimit with Redis: a cost of 11 at a limit of 10 never fits.
package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"

	goratelimit "github.com/krishna-kudari/ratelimit"
)

func main() {
	server := exec.Command("redis-server", "--port", "7399", "--save", "")
	if err := server.Start(); err != nil {
		panic(err)
	}
	// With WithFailOpen(false), a server that is not there is an error.
	limiter, err := goratelimit.New("redis://127.0.0.1:7399?max_retries=20", goratelimit.PerHour(10), goratelimit.WithFailOpen(false))
	if err != nil {
		panic(err)
	}
	result, err := limiter.AllowN(context.Background(), "large", 11)
	_ = server.Process.Kill()
	fmt.Println(err, "allowed", result.Allowed, "retry after", result.RetryAfter, "- RetryAfter tells the client exactly when to try again")
	if err == nil && !result.Allowed && result.RetryAfter > 0 {
		os.Exit(1)
	}
}
