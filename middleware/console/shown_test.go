// Tests of the command that the status page shows operators: the ban of a shown key.

package console_test

import (
	"strings"
	"testing"
	"time"

	"github.com/penstock-go/penstock/algorithms"
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
	if err := c.Ban(ctx, console.Subject{Policy: "p", Key: shown.Key}, time.Time{}, ""); err != nil {
		t.Fatal(err)
	}
	for ip, want := range map[string]bool{"192.0.2.1": true, "192.0.2.2": false} {
		if v, err := m.Check(from(ip)); err != nil || v.Policies[0].Banned != want {
			t.Errorf("%s: got banned %v, %v, want %v", ip, v.Policies[0].Banned, err, want)
		}
	}
	if err := c.Ban(ctx, console.Subject{Policy: "p", Key: "ip=#0123456789abcdef"}, time.Time{}, ""); err == nil {
		t.Error("got a ban of a key that the policy did not deny")
	}
}
