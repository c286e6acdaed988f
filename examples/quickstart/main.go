// Command quickstart limits each client address to 100 requests per minute.
package main

import (
	"fmt"
	"log"
	"net/http"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	ratelimit "github.com/penstock-go/penstock/middleware"
)

func main() {
	limited := ratelimit.Must(ratelimit.New(algorithms.NewMemory(nil), nil, ratelimit.Policy{
		Name: "api", Limit: algorithms.SlidingWindowCounter(100, time.Minute),
	}))
	hello := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "hello") })
	log.Fatal(http.ListenAndServe("127.0.0.1:8080", limited.Handler(hello)))
}
