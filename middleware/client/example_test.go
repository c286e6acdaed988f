package client_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/middleware"
	"github.com/penstock-go/penstock/middleware/client"
)

// server denies every first request: "come back in a second".
func server(wait string) *httptest.Server {
	var n atomic.Int64
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if n.Add(1) == 1 {
			w.Header().Set("Retry-After", wait)
			w.WriteHeader(http.StatusTooManyRequests)
		}
	}))
}

// The zero Options suit most clients.
func ExampleNewTransport() {
	s := server("1")
	defer s.Close()

	transport, err := client.NewTransport(nil, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	api := &http.Client{Transport: transport}
	begun := time.Now()
	resp, err := api.Get(s.URL) // is denied, waits, and is sent again
	if err != nil {
		fmt.Println(err)
		return
	}
	defer resp.Body.Close()
	fmt.Println(resp.StatusCode, time.Since(begun) >= time.Second)

	_, err = client.NewTransport(nil, &client.Options{Attempts: -1, Limit: algorithms.TokenBucket(1, time.Second)})
	fmt.Println(err)
	// Output:
	// 200 true
	// ratelimit: client: Options.Attempts is -1: want 1 or more, or 0 for no bound
	// ratelimit: client: Options.Limit is token-bucket 1/1s and Options.Limiter is nil: set both or none
}

// A wait beyond the budget returns the denial at once. The job goes back into its queue.
func ExampleRetryAfter() {
	s := server("3600")
	defer s.Close()

	api := &http.Client{Transport: ratelimit.Must(client.NewTransport(nil, &client.Options{MaxWait: time.Minute}))}
	resp, err := api.Get(s.URL)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer resp.Body.Close()
	if wait, ok := client.RetryAfter(resp); ok {
		fmt.Println(resp.StatusCode, "again in", wait)
	}
	// Output: 429 again in 1h0m0s
}

// The provider's contract allows 5 requests at once from each API key. With a shared
// limiter, all processes keep to it together.
func ExampleOptions_limiter() {
	s := httptest.NewServer(http.NotFoundHandler())
	defer s.Close()

	transport := ratelimit.Must(client.NewTransport(nil, &client.Options{
		Name:      "provider",
		Limiter:   algorithms.NewMemory(nil), // or shared.New(rdb, nil)
		Limit:     algorithms.Concurrent(5, time.Minute),
		Partition: func(r *http.Request) string { return r.Header.Get("X-Account") },
	}))
	resp, err := (&http.Client{Transport: transport}).Get(s.URL)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer resp.Body.Close() // gives the unit back
	fmt.Println(resp.StatusCode)
	// Output: 404
}

// Webhooks: at most ten requests per second to each destination, of all instances together. Requests wait for their turn
// until their contexts end. The burst of 2 makes up for late timers. While Redis is down, each instance sends its share.
func ExampleOptions_outgoing() {
	s := httptest.NewServer(http.NotFoundHandler())
	defer s.Close()
	limiter := algorithms.NewMemory(nil) // or shared.New(rdb, nil)

	webhooks := ratelimit.Must(client.NewTransport(nil, &client.Options{
		Name: "webhooks", Limiter: limiter, Limit: algorithms.TokenBucket(10, time.Second).WithBurst(2),
	}))
	resp, err := (&http.Client{Transport: webhooks, Timeout: time.Minute}).Post(s.URL, "application/json", nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer resp.Body.Close()
	fmt.Println(resp.StatusCode)
	// Output: 404
}

// A paced client spreads its requests over the window that the server advertises.
func ExampleOptions_pace() {
	// The server admits ten requests per second, five of them at once.
	limit := algorithms.TokenBucket(10, time.Second).WithBurst(5)
	limited := ratelimit.Must(ratelimit.New(algorithms.NewMemory(nil), nil, ratelimit.Policy{Name: "api", Limit: limit}))
	s := httptest.NewServer(limited.Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})))
	defer s.Close()

	denials := 0
	transport := ratelimit.Must(client.NewTransport(nil, &client.Options{
		Pace: true,
		Observers: []client.Observer{client.ObserverFunc(func(_ context.Context, e client.Event) {
			if e.Denied {
				denials++
			}
		})},
	}))
	api := &http.Client{Transport: transport}
	for range 15 {
		resp, err := api.Get(s.URL)
		if err != nil {
			fmt.Println(err)
			return
		}
		_ = resp.Body.Close() // it is empty
	}
	fmt.Println("denials:", denials)
	// Output: denials: 0
}

// A deadline says how long someone waits for the answer.
func ExampleTransport_RoundTrip() {
	s := server("30")
	defer s.Close()

	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	begun := time.Now()
	resp, err := (&http.Client{Transport: ratelimit.Must(client.NewTransport(nil, nil))}).Do(req)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer resp.Body.Close()
	fmt.Println(resp.StatusCode, time.Since(begun) < 5*time.Second)
	// Output: 429 true
}

// A log line for each wait and each denial that comes back.
func ExampleObserverFunc() {
	s := server("1")
	defer s.Close()

	transport := ratelimit.Must(client.NewTransport(nil, &client.Options{
		Name: "orders",
		Observers: []client.Observer{client.ObserverFunc(func(_ context.Context, e client.Event) {
			switch e.Kind {
			case client.Sent:
				fmt.Println(e.Name, e.Request.Method, "attempt", e.Attempt, "denied", e.Denied)
			case client.Waited:
				fmt.Println(e.Name, e.Kind, e.Reason, e.Elapsed > 0)
			}
		})},
	}))
	resp, err := (&http.Client{Transport: transport}).Get(s.URL)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer resp.Body.Close()
	// Output:
	// orders GET attempt 1 denied true
	// orders waited retry true
	// orders GET attempt 2 denied false
}
