// Tests of the simulated outage.

package playground

import (
	"net/http"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/penstock-go/penstock/internal/redistest"
)

// TestOutage: during the outage, sandboxes limit without Redis, and after it with Redis again.
func TestOutage(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	s := start(t, Options{Prefix: "shop-demo", Redis: redis.NewClient(&redis.Options{Addr: server.Addr()})})
	box := s.sandbox(t, "fixed-window 100/1m")
	l := s.listen(t, box)
	l.until(t, "Redis decides", func(now level) bool { return now.Source == "shared" && !now.Open })
	s.turn(t, `{"gone":true}`)
	l.until(t, "the circuit is open", func(now level) bool { return now.Source == "local" && now.Open && now.Gone })
	if status, _, _ := s.send(t, "POST "+box+"/requests", ""); status != http.StatusOK {
		t.Errorf("got %d without Redis, want 200", status)
	}
	s.turn(t, `{"gone":false}`)
	l.until(t, "Redis decides again", func(now level) bool { return now.Source == "shared" && !now.Open && !now.Gone })

	keys, err := server.Client().Keys(t.Context(), "*").Result()
	if err != nil || len(keys) == 0 {
		t.Errorf("got keys %q and %v, want some", keys, err)
	}
	for _, key := range keys {
		if !strings.HasPrefix(key, "shop-demo:") {
			t.Errorf("got key %q, want the prefix shop-demo", key)
		}
	}
	for _, body := range []string{"", "gone", `{"gone":1}`, `{"all":true}`} {
		if status, _, _ := s.send(t, "POST /demo/outage", body); status != http.StatusBadRequest {
			t.Errorf("%s: got %d, want 400", body, status)
		}
	}
	if status, _, _ := s.send(t, "POST /demo/outage", `{"gone":true}`, "Sec-Fetch-Site", "cross-site"); status != http.StatusForbidden {
		t.Errorf("from another site: got %d, want 403", status)
	}
}

func (s *site) turn(t *testing.T, body string) {
	t.Helper()
	if status, _, _ := s.send(t, "POST /demo/outage", body); status != http.StatusNoContent {
		t.Fatalf("%s: got %d, want 204", body, status)
	}
}

// TestNoSwitch: in memory, there is no outage to simulate.
func TestNoSwitch(t *testing.T) {
	t.Parallel()
	s := start(t, Options{})
	if status, _, _ := s.send(t, "POST /demo/outage", `{"gone":true}`); status != http.StatusNotFound {
		t.Errorf("got %d, want 404", status)
	}
}

// TestBadPrefix: New closes the client when it fails.
func TestBadPrefix(t *testing.T) {
	t.Parallel()
	rdb := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"})
	if p, err := New(Options{Prefix: "{shop}", Redis: rdb}); err == nil {
		p.Close(t.Context())
		t.Error("got a Page with braces in its prefix, want an error")
	}
	if err := rdb.Close(); err == nil {
		t.Error("got a client that was still open, want it closed")
	}
}
