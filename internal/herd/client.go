// The clients: when they send their next requests. A behaviour is made of pure
// functions, so that another one, such as the transport of package client, can take
// its place in the same crowd.

package main

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

const (
	backoffBase = 500 * time.Millisecond
	backoffCap  = time.Minute
)

// A hint is what a response says of limits.
type hint struct {
	retryAfter time.Duration // 0: none
	remaining  int64         // r of RateLimit; -1: none
	window     time.Duration // t of RateLimit
}

// A draw returns a random duration below n.
type draw func(n time.Duration) time.Duration

// A behaviour says how long a client waits before its next request.
type behaviour struct {
	denied func(h hint, tries int, random draw) time.Duration // tries: denials in a row, at least 1
	served func(h hint) time.Duration                         // nil: not at all
}

var (
	constant = behaviour{denied: func(hint, int, draw) time.Duration { return time.Second }}
	obedient = behaviour{denied: func(h hint, _ int, _ draw) time.Duration { return h.retryAfter }}
	jittered = behaviour{denied: func(h hint, _ int, random draw) time.Duration {
		return h.retryAfter + random(h.retryAfter/10)
	}}
	fullJitter  = behaviour{denied: func(_ hint, tries int, random draw) time.Duration { return random(backoff(tries)) }}
	exponential = behaviour{denied: func(_ hint, tries int, _ draw) time.Duration { return backoff(tries) }}

	// transport takes the server's wait as a floor, and adds full jitter.
	transport = behaviour{denied: func(h hint, tries int, random draw) time.Duration {
		return h.retryAfter + random(backoff(tries))
	}}
	paced = behaviour{denied: transport.denied, served: pace}
)

// backoff returns the longest wait after so many denials in a row.
func backoff(tries int) time.Duration {
	return min(backoffBase<<min(tries-1, 10), backoffCap)
}

// pace spreads the remaining requests over the advertised window.
func pace(h hint) time.Duration {
	if h.remaining < 0 {
		return 0
	}
	return h.window / time.Duration(max(h.remaining, 1))
}

// read returns what headers of this module's middleware say. A missing or malformed
// field says nothing.
func read(h http.Header) hint {
	all := hint{remaining: -1}
	if n, err := strconv.Atoi(h.Get("Retry-After")); err == nil {
		all.retryAfter = time.Duration(n) * time.Second
	}
	for part := range strings.SplitSeq(h.Get("RateLimit"), ";") {
		name, value, _ := strings.Cut(part, "=")
		n, err := strconv.ParseInt(value, 10, 64)
		switch {
		case err != nil:
		case name == "r":
			all.remaining = n
		case name == "t":
			all.window = time.Duration(n) * time.Second
		}
	}
	return all
}
