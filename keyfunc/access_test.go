package keyfunc

import (
	"context"
	"errors"
	"net/http"
	"net/netip"
	"strings"
	"testing"
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
		var all []string
		info, _ := tt.key.Inspect()
		for _, form := range info.Forms {
			all = append(all, strings.Join(form, "|"))
		}
		if got := strings.Join(all, ", "); got != tt.want {
			t.Errorf("got %s, want %s", got, tt.want)
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
		if got := strings.Join(tt.key.Addresses(netip.MustParseAddr(tt.address)), " "); got != tt.want {
			t.Errorf("%s: got %s, want %s", tt.address, got, tt.want)
		}
	}
}

// A gate admits API keys or not, and notes the results of lookups.
type gate struct {
	shut    bool
	lookups []any
	results []error
}

func (g *gate) Admit(lookup any, _ string) bool {
	g.lookups = append(g.lookups, lookup)
	return !g.shut
}

func (g *gate) Done(err error) { g.results = append(g.results, err) }

// TestGuard: a guard is asked before each lookup, once per value and lookup, and receives the result. A key that
// it does not admit is unknown, and no other error changes.
func TestGuard(t *testing.T) {
	var answer error
	lookup := func(context.Context, string) (Identity, error) { return Identity{ID: "42"}, answer }
	key, other := APIKey("X-API-Key", lookup), APIKey("X-API-Key", lookup)
	for _, tt := range []struct {
		value        string
		shut         bool
		answer, want error
		asked        int
	}{
		{"k", false, nil, nil, 1},
		{"k", false, ErrUnknown, ErrUnknown, 1},
		{"k", false, context.Canceled, context.Canceled, 1},
		{"k", true, nil, ErrUnknown, 1},
		{"a b", true, nil, ErrMalformed, 0},
		{"", true, nil, ErrMissing, 0},
	} {
		g, q := &gate{shut: tt.shut}, &Request{Request: request()}
		if answer = tt.answer; tt.value != "" {
			q = &Request{Request: request("X-API-Key", tt.value)}
		}
		q.SetGuard(g)
		for range 2 {
			if _, _, err := key.Append(nil, q); !errors.Is(err, tt.want) {
				t.Errorf("%q: got %v, want %v", tt.value, err, tt.want)
			}
		}
		if len(g.lookups) != tt.asked || len(g.results) != tt.asked && !tt.shut || tt.shut && len(g.results) > 0 {
			t.Errorf("%q: got %d questions and %d results, want %d and no result of a key that is not admitted", tt.value, len(g.lookups), len(g.results), tt.asked)
		}
		for _, err := range g.results {
			if !errors.Is(err, tt.want) {
				t.Errorf("%q: got the result %v, want %v", tt.value, err, tt.want)
			}
		}
	}
	g, q := new(gate), &Request{Request: request("X-API-Key", "k")}
	q.SetGuard(g)
	for _, k := range []Key{key, other} {
		_, _, _ = k.Append(nil, q)
	}
	if len(g.lookups) != 2 || g.lookups[0] == g.lookups[1] {
		t.Errorf("got the lookups %v, want two that differ", g.lookups)
	}
}

// TestGuardOfAPanic: a lookup that panics has ended, too.
func TestGuardOfAPanic(t *testing.T) {
	key := APIKey("X-API-Key", func(context.Context, string) (Identity, error) { panic("no") })
	g, q := new(gate), &Request{Request: request("X-API-Key", "k")}
	q.SetGuard(g)
	func() {
		defer func() { _ = recover() }()
		_, _, _ = key.Append(nil, q)
	}()
	if len(g.results) != 1 || g.results[0] == nil || errors.Is(g.results[0], ErrUnknown) {
		t.Errorf("got the results %v, want one that is another error", g.results)
	}
}
