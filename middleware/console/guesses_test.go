// Tests of what operators see of addresses that sent unknown API keys.

package console_test

import (
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/keyfunc"
	"github.com/penstock-go/penstock/middleware"
	"github.com/penstock-go/penstock/middleware/console"
	"github.com/penstock-go/penstock/middleware/overrides"
)

// TestWhoOfGuessers: the answers about an account and about an address say that the address sent unknown API keys.
func TestWhoOfGuessers(t *testing.T) { synctest.Test(t, whoOfGuessers) }

func whoOfGuessers(t *testing.T) {
	apiKey := keyfunc.APIKey("X-API-Key", func(_ context.Context, key string) (keyfunc.Identity, error) {
		if key == "good" {
			return keyfunc.Identity{ID: "42"}, nil
		}
		return keyfunc.Identity{}, keyfunc.ErrUnknown
	})
	table := overrides.NewMemory()
	m := ratelimit.Must(ratelimit.New(newStill(), &ratelimit.Options{ClientIP: keyfunc.IP(nil), Overrides: table, Logger: quiet},
		ratelimit.Policy{Name: "api", Key: apiKey, Limit: hourly}, ratelimit.Policy{Name: "both", Key: keyfunc.FirstOf(apiKey, keyfunc.IP(nil)), Limit: hourly}))
	c := console.New(m)
	said := func(client console.Subject) string {
		var all []string
		for _, s := range who(t, c, client) {
			all = append(all, s.Says)
		}
		return strings.Join(all, "\n")
	}
	account, address := console.Subject{ID: "42"}, console.Subject{IP: netip.MustParseAddr("192.0.2.1")}
	const left = "token-bucket 10/1h has 10 left, from default"
	if got, want := said(address), "api admits ip=192.0.2.1: it has sent few unknown keys\nboth admits ip=192.0.2.1: "+left; got != want {
		t.Errorf("before: got\n%s\nwant\n%s", got, want)
	}
	for ip := range 2 {
		for i := range 21 {
			r := from(fmt.Sprint("192.0.2.", 1+ip))
			r.Header = http.Header{"X-Api-Key": {fmt.Sprint("guess", i)}}
			_, _ = m.Check(r)
		}
		want := "; 1 address sent unknown API keys, and a key that is new from it waits for its turn"
		if ip == 1 {
			want = "; 2 addresses sent unknown API keys, and a key that is new from one of them waits for its turn"
		}
		if got := said(account); got != "api admits usr=42: "+left+want+"\nboth admits usr=42: "+left+want {
			t.Errorf("got\n%s", got)
		}
	}
	if got, want := said(address), "api may deny ip=192.0.2.1: it depends on its API key, because the address sent unknown ones: a key that is new from it waits for its turn\n"+
		"both admits ip=192.0.2.1: "+left+"; 1 address sent unknown API keys, and a key that is new from it waits for its turn"; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if s := who(t, c, console.Subject{IP: netip.MustParseAddr("192.0.2.9")})[0]; s.Guessers != 0 || s.Verdict != console.Admitted {
		t.Errorf("got %+v of another address, want it admitted", s)
	}
	for mode, want := range map[ratelimit.Mode]string{
		ratelimit.ModeShadow: "api admits ip=192.0.2.1: an override says shadow", ratelimit.ModeOff: "api admits ip=192.0.2.1: an override says off",
		ratelimit.ModeBanned: "api denies ip=192.0.2.1 until an operator ends it: it is banned",
	} {
		override(t, table, "api", "ip=192.0.2.1", ratelimit.Override{Mode: mode})
		if got := said(address); !strings.Contains(got, want) {
			t.Errorf("got\n%s\nwant %s", got, want)
		}
	}
	override(t, table, "api", "ip=192.0.2.1", ratelimit.Override{Mode: ratelimit.ModeBanned, Until: time.Now().Add(time.Hour)})
	if s := who(t, c, address)[0]; s.Verdict != console.Denied || s.ClearsAfter < console.Wait(59*time.Minute) || s.ClearsAfter == console.Wait(algorithms.Never) {
		t.Errorf("got %+v of a ban for an hour", s)
	}
}
