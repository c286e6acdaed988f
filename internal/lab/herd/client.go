// The clients, and how long they wait after a denial.

package main

import (
	"context"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/hashicorp/go-retryablehttp"

	"github.com/penstock-go/penstock/headers"
	"github.com/penstock-go/penstock/middleware/client"
)

const (
	backoffBase = 500 * time.Millisecond
	backoffCap  = time.Minute
)

// A draw returns a random duration below n.
type draw func(n time.Duration) time.Duration

// A behaviour returns how long a client waits after a denial. The server asks it to wait for hint, and it was denied tries
// times in a row, at least 1.
type behaviour func(hint time.Duration, tries int, random draw) time.Duration

func constant(time.Duration, int, draw) time.Duration { return time.Second }

// obedient waits as told, to the millisecond, as the SDKs of OpenAI and Anthropic do.
func obedient(hint time.Duration, _ int, _ draw) time.Duration { return hint }

func jittered(hint time.Duration, _ int, random draw) time.Duration { return hint + random(hint/10) }

func fullJitter(_ time.Duration, tries int, random draw) time.Duration { return random(backoff(tries)) }

func exponential(_ time.Duration, tries int, _ draw) time.Duration { return backoff(tries) }

// backoff returns the longest wait after so many denials in a row.
func backoff(tries int) time.Duration {
	return min(backoffBase<<min(tries-1, 10), backoffCap)
}

// A program makes the client of a visitor. The client sends a request, with up to so many attempts, and returns the last
// response.
type program func(v *visitor, attempts int) (send func() (*http.Response, error))

const url = "http://herd.example/"

// waits is a client with a behaviour.
func waits(b behaviour) program {
	return func(v *visitor, attempts int) func() (*http.Response, error) {
		return func() (*http.Response, error) {
			for tries := 1; ; tries++ {
				resp, err := v.RoundTrip(nil)
				if err != nil || resp.StatusCode == http.StatusOK || tries == attempts {
					return resp, err
				}
				time.Sleep(b(headers.Read(resp.StatusCode, resp.Header, time.Now()).Wait, tries, v.draw))
			}
		}
	}
}

// retryable is a client of go-retryablehttp.
func retryable(v *visitor, attempts int) func() (*http.Response, error) {
	c := retryablehttp.NewClient()
	c.Logger, c.RetryMax, c.HTTPClient = nil, attempts-1, &http.Client{Transport: v}
	c.ErrorHandler = retryablehttp.PassthroughErrorHandler
	return func() (*http.Response, error) { return c.Get(url) }
}

// ours is a client.Transport of a process of its own. Its jitter has no seed.
func ours(pace bool) program {
	return func(v *visitor, attempts int) func() (*http.Response, error) {
		transport, err := client.NewTransport(v, &client.Options{Pace: pace, Attempts: attempts, MaxWait: time.Hour})
		return func() (*http.Response, error) {
			if err != nil {
				return nil, err
			}
			return transport.RoundTrip(httptest.NewRequestWithContext(context.Background(), http.MethodGet, url, nil))
		}
	}
}
