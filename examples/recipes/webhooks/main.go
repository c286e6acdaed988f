// Command webhooks sends webhooks and does jobs, ten per second together with all its instances.
package main

import (
	"context"
	"log"
	"net/http"
	"strings"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	ratelimit "github.com/penstock-go/penstock/middleware"
	"github.com/penstock-go/penstock/middleware/client"
)

// A burst of 2 makes up for late timers. If the other side counts an exact window, ask for a little less than it allows.
var tenPerSecond = algorithms.TokenBucket(10, time.Second).WithBurst(2)

// newClient returns a client whose requests wait for their turn, and are sent again after a 429. A request whose
// deadline is too short for the wait fails at once, or gets the 429 itself.
func newClient(limiter algorithms.Limiter) (*http.Client, error) {
	transport, err := client.NewTransport(nil, &client.Options{
		Name: "webhooks", Limiter: limiter, Limit: tenPerSecond,
		Statuses: []int{http.StatusTooManyRequests}, Retry: func(*http.Request) bool { return true }, // a 429 has not run
	})
	return &http.Client{Transport: transport}, err
}

// work does jobs without HTTP. Each waits until the limit of its customer admits it.
func work(ctx context.Context, limiter algorithms.Limiter, jobs <-chan string, do func(customer string)) error {
	for customer := range jobs {
		if err := algorithms.Wait(ctx, limiter, "usr="+customer, tenPerSecond); err != nil {
			return err // ctx has ended, or would end first
		}
		do(customer)
	}
	return nil
}

func main() {
	limiter := algorithms.NewMemory(nil) // shared.New counts in all instances
	hooks := ratelimit.Must(newClient(limiter))
	jobs := make(chan string, 1)
	jobs <- "acme"
	close(jobs)
	err := work(context.Background(), limiter, jobs, func(customer string) {
		resp, err := hooks.Post("http://127.0.0.1:8080/hook", "application/json", strings.NewReader(`{"customer":"`+customer+`"}`))
		if err != nil {
			log.Fatal(err)
		}
		log.Println(resp.Status, resp.Body.Close())
	})
	log.Println(err)
}
