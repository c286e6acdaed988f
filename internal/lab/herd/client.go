// The clients whose waits are pure functions, and how they read a response.

package main

import (
	"net/http/httptest"
	"time"

	"github.com/penstock-go/penstock/headers"
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

func obedient(hint time.Duration, _ int, _ draw) time.Duration { return hint }

func jittered(hint time.Duration, _ int, random draw) time.Duration { return hint + random(hint/10) }

func fullJitter(_ time.Duration, tries int, random draw) time.Duration { return random(backoff(tries)) }

func exponential(_ time.Duration, tries int, _ draw) time.Duration { return backoff(tries) }

// backoff returns the longest wait after so many denials in a row.
func backoff(tries int) time.Duration {
	return min(backoffBase<<min(tries-1, 10), backoffCap)
}

// hintOf returns the wait that a response asks for.
func hintOf(w *httptest.ResponseRecorder) time.Duration {
	return headers.Read(w.Code, w.Header(), time.Now()).Wait
}
