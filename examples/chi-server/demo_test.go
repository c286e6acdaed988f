// Tests of the demo page inside the server.

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/algorithms/overrides"
	"github.com/penstock-go/penstock/internal/redistest"
	ratelimit "github.com/penstock-go/penstock/middleware"
)

// TestDemoRoutes: the page says of each route what holds there.
func TestDemoRoutes(t *testing.T) {
	t.Parallel()
	memory := algorithms.NewMemory(nil)
	w, err := newWatch(slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	l, err := newLimits(&backend{limiter: memory, table: overrides.NewMemory()}, config{secret: []byte(demoSecret)}, w)
	if err != nil {
		t.Fatal(err)
	}
	s := start(t)
	for _, route := range demoRoutes {
		if got := limitOf(t, l, route.Policy); got != route.Limit {
			t.Errorf("%s: got the limit %q, want %q", route.Title, route.Limit, got)
		}
		r := s.send(t, route.Method+" "+route.Path, route.Body, "X-API-Key", "demo-pro")
		if got := r.header.Get("RateLimit"); !strings.HasPrefix(got, `"`+route.Policy+`";`) {
			t.Errorf("%s: got %d and RateLimit %q, want that of %q", route.Title, r.status, got, route.Policy)
		}
	}
}

func limitOf(t *testing.T, l *limits, policy string) string {
	t.Helper()
	for _, m := range l.all {
		e, err := ratelimit.NewConsole(m).Explain(t.Context(), ratelimit.Subject{Policy: policy, Key: "key=any"})
		if errors.Is(err, ratelimit.ErrNotFound) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		return e.Limits[0].Limit.String()
	}
	return ""
}

// TestDemoIsGuarded: the page is there for everybody, and what it asks for is limited, without a word about by how much.
func TestDemoIsGuarded(t *testing.T) {
	t.Parallel()
	s := start(t)
	const line = "GET /demo/compare?traffic=edge&requests=1&burst=1"
	for i := range 200 {
		r := s.send(t, line, "")
		if r.status == http.StatusTooManyRequests {
			if i < 75 || r.header.Get("RateLimit") != "" || r.header.Get("Retry-After") == "" {
				t.Errorf("request %d: got %v, want 75 admitted, and Retry-After only", i, r.header)
			}
			if r := s.send(t, "GET /", ""); r.status != http.StatusOK || r.limitFields() != nil {
				t.Errorf("/: got %d and %v, want 200 without limits", r.status, r.limitFields())
			}
			return
		}
	}
	t.Error("got 200 comparisons, want some denied")
}

// TestDemoOutage: what is taken away from sandboxes is taken away from nothing else.
func TestDemoOutage(t *testing.T) {
	t.Parallel()
	s := start(t, "-redis", "redis://"+redistest.Start(t).Addr(), "-demo-outage")
	if r := s.send(t, "POST /demo/outage", `{"gone":true}`); r.status != http.StatusNoContent {
		t.Fatalf("got %d, want 204", r.status)
	}
	// Logins fail closed: without Redis none is answered. One may be refused on a busy machine, where Redis is late.
	redistest.Until(t, "a login succeeds, because the API has its Redis", func() bool {
		return s.send(t, "POST /v1/login", right).status == http.StatusOK
	})
	if log := s.log.String(); strings.Contains(log, gone) {
		t.Errorf("got log\n%s\nwant nothing about Redis", log)
	}
}

// TestShutdownWithPagesOpen: nobody's open page holds up the end.
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
	s.wait(t) // Shutdown gives up after as long as the stream would take
}
