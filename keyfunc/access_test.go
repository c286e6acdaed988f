package keyfunc

import (
	"context"
	"errors"
	"net/http"
	"net/netip"
	"strings"
	"testing"

	"github.com/penstock-go/penstock/internal/keyaccess"
)

// A form of a Key is what each of its texts looks like.
func TestForms(t *testing.T) {
	user, ip, custom := User(userOf(Identity{}, false)), IP(nil), Custom("cert", func(*http.Request) (string, error) { return "", nil })
	for _, tt := range []struct {
		key  Key
		want string
	}{
		{Key{}, ""},
		{ip, "ip"},
		{Const("a b"), "const=a%20b"},
		{Header("X|Tenant"), "hdr.x%7Ctenant"},
		{Join(user, Route()), "usr|rt"},
		{FirstOf(user, ip, user), "usr, ip"},
		{FirstOf(user, Const("a"), Const("b")), "usr, const=a, const=b"},
		{Join(FirstOf(user, ip), Route()), "usr|rt, ip|rt"},
		{Join(ip, FirstOf(Route(), Const("a")), FirstOf(custom, user)), "ip|rt|cert, ip|rt|usr, ip|const=a|cert, ip|const=a|usr"},
		{FirstOf(Join(user, ip), ip), "usr|ip, ip"},
		{Join(FirstOf(user, Join(ip, custom)), Route()), "usr|rt, ip|cert|rt"},
	} {
		for range 2 { // a caller owns the slices
			var all []string
			for _, form := range keyaccess.Forms(tt.key) {
				all = append(all, strings.Join(form, "|"))
				clear(form)
			}
			if got := strings.Join(all, ", "); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		}
	}
}

// TestAddresses: each part of a Key that has an address cuts it to its own prefix.
func TestAddresses(t *testing.T) {
	wide := IP(&IPOptions{IPv6Bits: 48})
	for _, tt := range []struct {
		key           Key
		address, want string
	}{
		{Key{}, "192.0.2.1", ""},
		{Const("a"), "192.0.2.1", ""},
		{Peer(), "::ffff:192.0.2.1", "ip=192.0.2.1"},
		{IP(nil), "2001:db8:1:2::3%eth0", "ip=2001:db8:1:2::/64"},
		{Join(FirstOf(wide, IP(nil)), Route()), "2001:db8:1:2::3", "ip=2001:db8:1::/48 ip=2001:db8:1:2::/64"},
		{FirstOf(wide, Join(wide, Const("a"))), "2001:db8:1:2::3", "ip=2001:db8:1::/48"},
	} {
		if got := strings.Join(keyaccess.Addresses(tt.key, netip.MustParseAddr(tt.address)), " "); got != tt.want {
			t.Errorf("%s: got %s, want %s", tt.address, got, tt.want)
		}
	}
}

// TestNoLookup: a marked Request makes well-formed API keys unknown without a
// lookup, changes no other error, and becomes ordinary again.
func TestNoLookup(t *testing.T) {
	lookups := 0
	key := APIKey("X-API-Key", func(context.Context, string) (Identity, error) {
		lookups++
		return Identity{ID: "42"}, nil
	})
	for value, want := range map[string]error{"k": ErrUnknown, "a b": ErrMalformed, "": ErrMissing} {
		q := &Request{Request: request()}
		if value != "" {
			q = &Request{Request: request("X-API-Key", value)}
		}
		keyaccess.NoLookup(q, true)
		if _, _, err := key.Append(nil, q); !errors.Is(err, want) || lookups > 0 {
			t.Errorf("%q: got %v and %d look-ups, want %v and none", value, err, lookups, want)
		}
	}
	q := &Request{Request: request("X-API-Key", "k")}
	keyaccess.NoLookup(q, true)
	keyaccess.NoLookup(q, false)
	if got, _, err := key.Append(nil, q); string(got) != "usr=42" || err != nil || lookups != 1 {
		t.Errorf("got %s, %v and %d look-ups, want usr=42 and one", got, err, lookups)
	}
	if got := testing.AllocsPerRun(100, func() { keyaccess.NoLookup(q, true) }); got != 0 {
		t.Errorf("got %v allocations, want 0", got)
	}
}
