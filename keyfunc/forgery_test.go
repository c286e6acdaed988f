package keyfunc

import (
	"math/rand/v2"
	"net/netip"
	"strings"
	"testing"
)

// shards are what a hostile client puts together.
var shards = []string{
	`"`, `\`, ",", ";", "=", "for", "for=", "For=1.2.3.4", "8.8.8.8", "[2001:db8::1]", "[2001:db8::1]:80", "_x", "unknown", " ", "\t", "10.0.0.1",
	"::ffff:10.0.0.1", "by=", "proto=https", "[", "]", ":", "%eth0", "1.2.3.4:5", `"[fe80::1%25e]"`, "fd00::9", `\"`, `host="a\"b"`, "",
}

// TestNoForgery: whatever a client sends, it has the address that its proxy has seen. It is never the proxy, and never
// unknown.
func TestNoForgery(t *testing.T) {
	const client, requests = "203.0.113.7", 10_000
	appended := map[string][]string{
		"X-Forwarded-For": {client, client + ":4711"},
		"Forwarded": {
			"for=" + client, `for="` + client + `:4711"`, "proto=http;for=" + client + ";by=10.0.0.3", `host="a\"b, c\\";For="` + client + `"`,
		},
	}
	trusted := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fd00::/8")}
	random := rand.New(rand.NewPCG(1, 2))
	for header, entries := range appended {
		for name, o := range map[string]*IPOptions{
			"Trusted": {Trusted: trusted, Header: header}, "Hops": {Hops: 1, Header: header}, "TrustUnix": {TrustUnix: true, Header: header},
		} {
			key, peer := IP(o), "10.0.0.3:9"
			if o.TrustUnix {
				peer = "@"
			}
			for range requests {
				var sent strings.Builder
				for range 1 + random.IntN(9) {
					sent.WriteString(shards[random.IntN(len(shards))])
				}
				entry := entries[random.IntN(len(entries))]
				lines := []string{sent.String(), entry}
				if random.IntN(2) == 0 {
					lines = []string{sent.String() + ", " + entry}
				}
				if got, err := key.Of(forwardedRequest(peer, header, lines)); err != nil || got != "ip="+client {
					t.Fatalf("%s, %s: got %q, %v of %q, want the client", header, name, got, err, lines)
				}
			}
		}
	}
}

// TestUnreadableIsNeverTheProxy: if the proxy's own entry is random, the client is that address, or unknown.
func TestUnreadableIsNeverTheProxy(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for _, header := range []string{"X-Forwarded-For", "Forwarded", "X-Real-Ip"} {
		for _, o := range []*IPOptions{{Trusted: proxies, Header: header}, {Hops: 1, Header: header}, {Hops: 2, Header: header}} {
			key := IP(o)
			for range 5_000 {
				var sent strings.Builder
				for range 1 + random.IntN(9) {
					sent.WriteString(shards[random.IntN(len(shards))])
				}
				if got, err := key.Of(forwardedRequest("10.9.9.9:9", header, []string{sent.String()})); err != nil || got == "ip=10.9.9.9" {
					t.Fatalf("got %q, %v of %s: %q, want another address, or unknown", got, err, header, sent.String())
				}
			}
		}
	}
}
