package keyfunc

import (
	"errors"
	"strings"
	"testing"
)

// An IP without proxy settings takes the address that ClientIP finds, and cuts
// it by its own IPv6Bits. All other Keys go their own way.
func TestClientIP(t *testing.T) {
	trusted, hops := IP(&IPOptions{Trusted: proxies, IPv6Bits: 128}), IP(&IPOptions{Hops: 2, IPv6Bits: 16})
	wide, narrow := IP(&IPOptions{IPv6Bits: 48}), IP(&IPOptions{IPv6Bits: 128})
	v4, v6 := []string{"6.6.6.6, 1.2.3.4, 10.0.0.2"}, []string{"2001:db8:1:2::3, 10.0.0.2"}
	for _, tt := range []struct {
		name     string
		key      Key
		clientIP Key
		peer     string
		xff      []string
		want     string
	}{
		{"no ClientIP", IP(nil), Key{}, proxy, v4, "ip=10.0.0.1"},
		{"no ClientIP, IPv6", wide, Key{}, "[fd00:1:2:3::4]:80", v4, "ip=fd00:1:2::/48"},
		{"ClientIP is the peer", IP(nil), Peer(), proxy, v4, "ip=10.0.0.1"},
		{"ClientIP has no proxies", IP(nil), wide, proxy, v4, "ip=10.0.0.1"},
		{"ClientIP has no proxies, IPv6", narrow, wide, "[fd00:1:2:3::4]:80", v4, "ip=fd00:1:2:3::4"},
		{"trusted", IP(nil), trusted, proxy, v4, "ip=1.2.3.4"},
		{"trusted, IPv6", IP(nil), trusted, proxy, v6, "ip=2001:db8:1:2::/64"},
		{"trusted, IPv6, wide", wide, trusted, proxy, v6, "ip=2001:db8:1::/48"},
		{"trusted, not by a proxy", IP(nil), trusted, "1.2.3.9:80", v4, "ip=1.2.3.9"},
		{"hops", IP(nil), hops, "1.2.3.9:80", v4, "ip=1.2.3.4"},
		{"hops, before cutting", narrow, hops, proxy, v6, "ip=2001:db8:1:2::3"},
		{"hops, too few", IP(nil), hops, proxy, nil, "ip=10.0.0.1"},
		{"no peer", IP(nil), trusted, "@", v4, "ip=unknown"},
		{"within a Join", Join(Const("a"), IP(nil)), trusted, proxy, v4, "const=a|ip=1.2.3.4"},
		{"within a FirstOf", FirstOf(Header("X-None"), wide), trusted, proxy, v6, "ip=2001:db8:1::/48"},
		{"Peer stays", Peer(), trusted, proxy, v4, "ip=10.0.0.1"},
		{"Peer stays, IPv6", Peer(), trusted, "[fd00:1:2:3::4]:80", v4, "ip=fd00:1:2:3::/64"},
		{"proxy settings stay", trusted, hops, "1.2.3.9:80", v4, "ip=1.2.3.9"},
		{"hops stay", hops, Peer(), proxy, v4, "ip=1.2.3.4"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			q := &Request{Request: forwardedRequest(tt.peer, "X-Forwarded-For", tt.xff), ClientIP: tt.clientIP}
			got, tier, err := tt.key.Append(nil, q)
			if err != nil || string(got) != tt.want || tier != "" {
				t.Errorf("got %q, %q, %v, want %q", got, tier, err, tt.want)
			}
		})
	}
}

// A ClientIP that finds no addresses must not silently mean the peer.
func TestClientIPThatIsNone(t *testing.T) {
	for name, tt := range map[string]struct {
		clientIP Key
		want     string
	}{
		"a header":      {Header("X-Client"), "neither an IP nor a Peer"},
		"a join":        {Join(IP(nil)), "neither an IP nor a Peer"},
		"misconfigured": {IP(&IPOptions{Hops: 99}), "Hops is 99"},
	} {
		q := &Request{Request: request("X-Client", "1.2.3.4"), ClientIP: tt.clientIP}
		got, _, err := IP(nil).Append(nil, q)
		if err == nil || len(got) != 0 || !strings.Contains(err.Error(), tt.want) {
			t.Fatalf("%s: got %q, %v, want an error with %q", name, got, err, tt.want)
		}
		for _, sentinel := range sentinels {
			if errors.Is(err, sentinel) {
				t.Errorf("%s: got %v, want it not to wrap %q", name, err, sentinel)
			}
		}
		if got, _, err := Peer().Append(nil, q); err != nil || string(got) != "ip=192.0.2.1" {
			t.Errorf("%s: got %q, %v of Peer, want its address", name, got, err)
		}
	}
}
