// Tests of the page inside the server.

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/examples/chi-server/playground"
	"github.com/penstock-go/penstock/internal/redistest"
)

// TestDemoRoutes: the page shows the policy and the limit of each route.
func TestDemoRoutes(t *testing.T) {
	t.Parallel()
	s := start(t)
	for _, route := range playground.Routes {
		if got := limitOf(route.Policy).String(); got != route.Limit {
			t.Errorf("%s: got the limit %q, want %q", route.Title, got, route.Limit)
		}
		r := s.send(t, route.Method+" "+route.Path, route.Body, "X-API-Key", "demo-pro")
		if got := r.header.Get("RateLimit"); !strings.HasPrefix(got, `"`+route.Policy+`";`) {
			t.Errorf("%s: got %d and RateLimit %q, want the field of %q", route.Title, r.status, got, route.Policy)
		}
	}
}

// limitOf returns the limit of a policy in the table, and Nobody if the table lacks the policy.
func limitOf(policy string) algorithms.Limit {
	for _, p := range slices.Concat(limits...) {
		if p.Name == policy {
			return p.Limit
		}
	}
	return algorithms.Nobody()
}

// TestDemoIsGuarded: the page itself has no limit. Its requests have one, which no header shows.
func TestDemoIsGuarded(t *testing.T) {
	t.Parallel()
	s := start(t)
	const line = "GET /demo/compare?limit=1/1m&at=0"
	for i := range 200 {
		r := s.send(t, line, "")
		if r.status == http.StatusTooManyRequests {
			if i < 75 || r.header.Get("RateLimit") != "" || r.header.Get("Retry-After") == "" {
				t.Errorf("request %d: got %v, want 75 admitted, and then Retry-After only", i, r.header)
			}
			if r := s.send(t, "GET /", ""); r.status != http.StatusOK || r.limitFields() != nil {
				t.Errorf("/: got %d and %v, want 200 without limits", r.status, r.limitFields())
			}
			return
		}
	}
	t.Error("got 200 comparisons, want some denied")
}

// TestDemoOutage: the simulated outage does not reach the API.
func TestDemoOutage(t *testing.T) {
	t.Parallel()
	s := startForOutages(t, "-redis", "redis://"+redistest.Start(t).Addr(), "-demo-outage")
	if r := s.send(t, "POST /demo/outage", `{"gone":true}`); r.status != http.StatusNoContent {
		t.Fatalf("got %d, want 204", r.status)
	}
	// Logins fail closed. On a busy machine, where Redis is late, one may be refused.
	redistest.Until(t, "a login succeeds, because the API has its Redis", func() bool {
		return s.send(t, "POST /v1/login", right).status == http.StatusOK
	})
	if log := s.log.String(); strings.Contains(log, gone) {
		t.Errorf("got log\n%s\nwant none about Redis", log)
	}
}

// TestShutdownWithPagesOpen: an open page does not delay the shutdown.
func TestShutdownWithPagesOpen(t *testing.T) {
	t.Parallel()
	s := start(t)
	var made struct{ ID string }
	if err := json.Unmarshal([]byte(s.send(t, "POST /demo/sandboxes", `{"limit":"1/1s"}`).body), &made); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), deadline)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+"/demo/sandboxes/"+made.ID+"/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := s.client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	events := bufio.NewReader(response.Body)
	if line, err := events.ReadString('\n'); err != nil || line != "event: level\n" {
		t.Fatalf("got %q and %v, want a level", line, err)
	}
	s.stop()
	if _, err := io.Copy(io.Discard, events); err != nil {
		t.Errorf("got %v, want the stream to end", err)
	}
	s.wait(t) // Shutdown fails if the stream goes on
}

// TestOneVisitorLeavesRoom: whatever one address keeps open, another one gets sandboxes and streams, and keeps them.
func TestOneVisitorLeavesRoom(t *testing.T) {
	backends(t, func(t *testing.T, args ...string) {
		s := start(t, append(args, "-trusted-proxies", "127.0.0.0/8")...)
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		honest, greedy := s.sandbox(t, "192.0.2.1"), s.sandbox(t, "192.0.2.2")
		stream := func(address, box string) int {
			r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+box+"/events", nil)
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("X-Forwarded-For", address)
			response, err := s.client.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { response.Body.Close() })
			return response.StatusCode
		}
		admitted := 0
		for range 40 {
			switch status := stream("192.0.2.2", greedy); status {
			case http.StatusOK:
				admitted++
			case http.StatusTooManyRequests:
			default:
				t.Fatalf("stream %d: got %d, want 200 or 429", admitted, status)
			}
		}
		if admitted != 24 {
			t.Errorf("got %d streams of one address, want 24", admitted)
		}
		for range 300 { // as many sandboxes as there are
			s.sandbox(t, "192.0.2.3")
		}
		for range 64 { // bodies that do not arrive
			conn, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			_, err = fmt.Fprintf(conn, "POST %s/limit HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 192.0.2.2\r\nContent-Length: 9\r\n\r\n{", greedy)
			if err != nil {
				t.Fatal(err)
			}
		}
		if status := stream("192.0.2.1", honest); status != http.StatusOK {
			t.Errorf("got %d for another address's stream, want 200", status)
		}
		s.sandbox(t, "192.0.2.1")
	})
}

// sandbox makes a sandbox of a client behind a proxy, and returns its path.
func (s *server) sandbox(t *testing.T, address string) string {
	t.Helper()
	var made struct{ ID string }
	r := s.send(t, "POST /demo/sandboxes", `{"limit":"1/1s"}`, "X-Forwarded-For", address)
	if err := json.Unmarshal([]byte(r.body), &made); err != nil || r.status != http.StatusCreated {
		t.Fatalf("got %d %s, want a sandbox", r.status, r.body)
	}
	return "/demo/sandboxes/" + made.ID
}
