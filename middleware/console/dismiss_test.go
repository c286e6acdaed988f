// Tests of what the status page shows operators to call: bans of shown keys, and dismissals.

package console_test

import (
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/middleware"
	"github.com/penstock-go/penstock/middleware/console"
	"github.com/penstock-go/penstock/middleware/overrides"
)

// TestBanOfAShownKey: operators ban a client by its key as TopDenied shows it, and learn the key of no other client.
func TestBanOfAShownKey(t *testing.T) {
	m := newMiddleware(t, algorithms.NewMemory(nil), overrides.NewMemory(), byIP("p", algorithms.TokenBucket(1, time.Hour)))
	c := console.New(m)
	for range 3 {
		if _, err := m.Check(from("192.0.2.1")); err != nil {
			t.Fatal(err)
		}
	}
	shown := m.TopDenied("p", 1)[0]
	if !strings.HasPrefix(shown.Key, "ip=#") || shown.Plain != "ip=192.0.2.1" {
		t.Fatalf("got %+v, want a hash, and the key for programs", shown)
	}
	if err := c.Ban(ctx, console.Subject{Policy: "p", Key: shown.Key}, time.Time{}); err != nil {
		t.Fatal(err)
	}
	for ip, want := range map[string]bool{"192.0.2.1": true, "192.0.2.2": false} {
		if v, err := m.Check(from(ip)); err != nil || v.Policies[0].Banned != want {
			t.Errorf("%s: got banned %v, %v, want %v", ip, v.Policies[0].Banned, err, want)
		}
	}
	if err := c.Ban(ctx, console.Subject{Policy: "p", Key: "ip=#0123456789abcdef"}, time.Time{}); err == nil {
		t.Error("got a ban of a key that the policy did not deny")
	}
}

// TestDismissal: operators dismiss a finding over HTTP, and the log says who did.
func TestDismissal(t *testing.T) {
	dear := byIP("p", algorithms.TokenBucket(1, time.Hour))
	dear.Cost = func(*http.Request) int64 { return 2 }
	h, logged := newHandler(t, algorithms.NewMemory(nil), nil, dear)
	if w := call(h, "POST", "/dismiss", `{"code":"PS107","policy":"p"}`); w.Code != http.StatusNotFound {
		t.Errorf("got %d without the finding: %s", w.Code, w.Body)
	}
	if w := call(h, "POST", "/dismiss", `{"code":"PS107","policy":"p","why":"it is fine"}`); w.Code != http.StatusBadRequest {
		t.Errorf("got %d for an unknown field: %s", w.Code, w.Body)
	}
	m, err := ratelimit.New(algorithms.NewMemory(nil), &ratelimit.Options{Logger: quiet}, dear)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.Check(from("192.0.2.1")); err != nil {
		t.Fatal(err)
	}
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(logged, nil)))
	h, err = console.New(m).Handler(func(*http.Request) (string, error) { return "alice", nil })
	slog.SetDefault(before)
	if err != nil {
		t.Fatal(err)
	}
	if w := call(h, "POST", "/dismiss", `{"code":"PS107","policy":"p"}`); w.Code != http.StatusNoContent {
		t.Errorf("got %d: %s", w.Code, w.Body)
	}
	if f := m.Findings(); len(f) != 1 || f[0].Dismissed.IsZero() || !strings.Contains(logged.String(), "console: dismiss\" who=alice code=PS107 policy=p") {
		t.Errorf("got %+v and the log %s", f, logged)
	}
}
