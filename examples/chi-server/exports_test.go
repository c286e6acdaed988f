// The test of slots.

package main

import (
	"net/http"
	"strconv"
	"testing"
)

// TestExportsAreSpread: a denied client gets a slot of its own, and no response mentions the limit of all clients.
func TestExportsAreSpread(t *testing.T) {
	t.Parallel()
	s := start(t)
	for range 200 { // more than ten per second, on any machine that sends these in ten seconds
		r := s.send(t, "GET /v1/exports", "")
		if r.status == http.StatusOK {
			continue
		}
		wait, err := strconv.Atoi(r.header.Get("Retry-After"))
		if r.status != http.StatusServiceUnavailable || err != nil || wait < 1 || r.header.Get("RateLimit") != "" {
			t.Errorf("got %d and %v, want 503 with Retry-After only", r.status, r.header)
		}
		return
	}
	t.Error("200 exports were served")
}
