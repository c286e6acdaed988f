package keyfunc

import (
	"net/http"
	"net/netip"
	"reflect"
	"strings"
	"testing"

	"github.com/penstock-go/penstock/internal/keyaccess"
)

func TestMisconfigurations(t *testing.T) {
	prefix := netip.MustParsePrefix
	trusted := func(p netip.Prefix) Key { return IP(&IPOptions{Trusted: []netip.Prefix{p}}) }
	custom := func(kind string) Key {
		return Custom(kind, func(*http.Request) (string, error) { return "x", nil })
	}
	for _, tt := range []struct {
		name string
		key  Key
		want string
	}{
		{"invalid prefix", trusted(netip.Prefix{}), "not valid"},
		{"4in6 prefix", trusted(netip.PrefixFrom(netip.MustParseAddr("::ffff:10.0.0.0"), 104)), "IPv4-mapped"},
		{"host bits", trusted(prefix("10.0.0.1/8")), `write "10.0.0.0/8"`},
		{"every address, IPv4", trusted(prefix("0.0.0.0/0")), "every address"},
		{"every address, IPv6", trusted(prefix("::/0")), "every address"},
		{"header without trusted", IP(&IPOptions{Header: "X-Real-IP"}), `"X-Real-Ip" without Trusted, TrustUnix or Hops`},
		{"bad header", IP(&IPOptions{Trusted: []netip.Prefix{prefix("10.0.0.0/8")}, Header: "a b"}), `"a b"`},
		{"bits too few", IP(&IPOptions{IPv6Bits: 15}), "IPv6Bits is 15"},
		{"bits too many", IP(&IPOptions{IPv6Bits: 129}), "IPv6Bits is 129"},
		{"bits negative", IP(&IPOptions{IPv6Bits: -1}), "IPv6Bits is -1"},
		{"hops negative", IP(&IPOptions{Hops: -1}), "Hops is -1"},
		{"hops too many", IP(&IPOptions{Hops: 33}), "Hops is 33"},
		{"hops and Unix sockets", IP(&IPOptions{Hops: 1, TrustUnix: true}), "cannot be combined"},
		{"optional zero", Optional(Key{}), "zero Key"},
		{"optional misconfigured", Optional(Header("")), `""`},
		{"optional in a first", FirstOf(Optional(Header("X-None")), IP(nil)), "Optional(FirstOf(...))"},
		{"optional in a first, deep", FirstOf(Join(Const("a"), Optional(Header("X-None"))), IP(nil)), "Optional(FirstOf(...))"},
		{"hops and trusted", IP(&IPOptions{Hops: 1, Trusted: []netip.Prefix{prefix("10.0.0.0/8")}}), "cannot be combined"},
		{"bad header of hops", IP(&IPOptions{Hops: 1, Header: "Host"}), "Request.Host"},
		{"no lookup", APIKey("X-Key", nil), "lookup is nil"},
		{"api key header", APIKey("", anyKey), `""`},
		{"join of two accounts", Join(User(userOf(Identity{}, false)), APIKey("X-Key", anyKey)), "2 parts yield an identity"},
		{"join of two accounts, nested", Join(FirstOf(Const("a"), APIKey("X-Key", anyKey)), Const("b"), Join(APIKey("X-Key", anyKey))),
			"2 parts yield an identity"},
		{"header empty", Header(""), `""`},
		{"header not a token", Header("X Tenant"), `"X Tenant"`},
		{"header host", Header("host"), "Request.Host"},
		{"header with secrets", Header("authorization"), "APIKey"},
		{"header with cookies", Header("Cookie"), "APIKey"},
		{"every IPv4 address in halves", trusting("0.0.0.0/1", "128.0.0.0/1"), "contain every IPv4 address"},
		{"every IPv4 address in parts", trusting("128.0.0.0/2", "10.0.0.0/8", "0.0.0.0/1", "::1/128", "192.0.0.0/3", "224.0.0.0/3"), "contain every IPv4 address"},
		{"every IPv6 address in halves", trusting("8000::/1", "::/1"), "contain every IPv6 address"},
		{"user nil", User(nil), "nil"},
		{"const empty", Const(""), "empty"},
		{"mux nil", RouteIn(nil), "nil"},
		{"custom nil", Custom("x", nil), "nil"},
		{"kind empty", custom(""), `""`},
		{"kind upper-case", custom("Tenant"), `"Tenant"`},
		{"kind digit first", custom("1a"), `"1a"`},
		{"kind separator", custom("a|b"), `"a|b"`},
		{"kind too long", custom(strings.Repeat("a", 33)), "31"},
		{"kind ip", custom("ip"), `"ip" is reserved`},
		{"kind usr", custom("usr"), `"usr" is reserved`},
		{"kind rt", custom("rt"), `"rt" is reserved`},
		{"kind const", custom("const"), `"const" is reserved`},
		{"kind hdr", custom("hdr"), `"hdr" is reserved`},
		{"join of none", Join(), "no keys"},
		{"first of none", FirstOf(), "no keys"},
		{"join of zero", Join(Const("a"), Key{}), "key 2 of 2"},
		{"first of zero", FirstOf(Key{}), "key 1 of 1"},
		{"route first", Join(Route(), Const("a")), "Join must not begin with a route"},
		{"mux route first", Join(RouteIn(http.NewServeMux()), Const("a")), "begin with a route"},
		{"route first, nested", Join(FirstOf(Const("a"), Route()), Const("a")), "begin with a route"},
		{"route first, deep", Join(Join(FirstOf(FirstOf(Route()))), Const("a")), "begin with a route"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := tt.key.Inspect()
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Fatalf("got %v, want a misconfiguration with %q", err, tt.want)
			}
			for line := range strings.Lines(err.Error()) {
				if !strings.HasPrefix(line, "keyfunc: ") {
					t.Errorf("got line %q, want prefix %q", line, "keyfunc: ")
				}
			}
			if s, err := tt.key.Of(request("X-Key", "k", "X-Tenant", "t")); err == nil {
				t.Errorf("got key %q in spite of the misconfiguration, want an error", s)
			}
		})
	}
}

func TestInspectReportsAllMisconfigurations(t *testing.T) {
	bad := &IPOptions{Trusted: []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0"), {}}, Header: "a b", Hops: 40, IPv6Bits: 200}
	k := Join(FirstOf(Route(), APIKey("", nil)), Join(), IP(bad), Custom("IP", nil), Key{}, User(nil))
	// Two each of APIKey and Custom, six of IP, and of Join: no keys, a route
	// first, a zero Key, two identities; one of User.
	_, err := k.Inspect()
	if got, want := strings.Count(err.Error(), "\n")+1, 15; got != want {
		t.Errorf("got %d misconfigurations, want %d:\n%v", got, want, err)
	}
}

// The route is the second key, whichever Key replaces the zero Key.
func TestZeroKeyBeforeARoute(t *testing.T) {
	_, err := Join(Key{}, Route()).Inspect()
	if want := "keyfunc: Join: key 1 of 2 is the zero Key"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %q only", err, want)
	}
}

func TestValidKeysHaveNoMisconfiguration(t *testing.T) {
	trusted := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fd00::/8")}
	user, apiKey := User(userOf(Identity{}, false)), APIKey("X-Key", anyKey)
	for _, k := range []Key{
		IP(nil), IP(&IPOptions{}), IP(&IPOptions{Trusted: trusted, Header: "cf-connecting-ip", IPv6Bits: 128}), Peer(),
		IP(&IPOptions{Hops: 1}), IP(&IPOptions{Hops: 32, Header: "Forwarded", IPv6Bits: 128}),
		IP(&IPOptions{IPv6Bits: 16}), Join(Const("a"), Route()), FirstOf(Route(), Const("a")),
		Join(FirstOf(user, apiKey, IP(nil)), Route()), FirstOf(Join(user, Const("a")), Join(apiKey, Const("a"))),
		Custom("a-1", func(*http.Request) (string, error) { return "", nil }),
		Custom("key", func(*http.Request) (string, error) { return "", nil }), // of API keys no longer
	} {
		if _, err := k.Inspect(); err != nil {
			t.Errorf("got %v, want no misconfiguration", err)
		}
	}
}

func TestInfo(t *testing.T) {
	peer, header := Peer(), Header("X|Tenant")
	shared, proxied := IP(&IPOptions{IPv6Bits: 48}), IP(&IPOptions{Trusted: proxies})
	user, apiKey := User(userOf(Identity{}, false)), APIKey("X-API-Key", anyKey)
	bearer := APIKey("Authorization", anyKey)
	custom := Custom("cert", func(*http.Request) (string, error) { return "", nil })
	of := func(kinds ...string) keyaccess.Info { return keyaccess.Info{Kinds: kinds} }
	const challenge = `APIKey header="X-Api-Key"`
	for _, tt := range []struct {
		name string
		key  Key
		want keyaccess.Info
	}{
		{"address", IP(nil), keyaccess.Info{Kinds: []string{"ip"}, Address: true, ByClientIP: true}},
		{"address, cut", shared, keyaccess.Info{Kinds: []string{"ip"}, Address: true, ByClientIP: true}},
		{"address, trusted", proxied, keyaccess.Info{Kinds: []string{"ip"}, Address: true}},
		{"address, hops", IP(&IPOptions{Hops: 1}), keyaccess.Info{Kinds: []string{"ip"}, Address: true}},
		{"peer", peer, keyaccess.Info{Kinds: []string{"ip"}, Address: true}},
		{"user", user, keyaccess.Info{Kinds: []string{"usr"}, Identity: true}},
		{"API key", apiKey, keyaccess.Info{Kinds: []string{"usr"}, Challenges: []string{challenge}, Identity: true, Unknown: true}},
		{"bearer", bearer, keyaccess.Info{Kinds: []string{"usr"}, Challenges: []string{"Bearer"}, Identity: true, Unknown: true}},
		{"header", header, of("hdr.x%7Ctenant")},
		{"const", Const("all"), of("const")},
		{"custom", custom, keyaccess.Info{Kinds: []string{"cert"}, Unknown: true}},
		{"field of a body", Optional(Join(JSONField("login", "user"), Const("x"))), keyaccess.Info{Kinds: []string{"login", "const"}, Folded: []string{"login"}}},
		{"route", Route(), of("rt")},
		{"route in", RouteIn(http.NewServeMux()), of("rt")},
		{"join", Join(proxied, header, Route()), of("ip", "hdr.x%7Ctenant", "rt")},
		{"join of one address", Join(peer), of("ip")},
		{"join by address", Join(Const("a"), shared), keyaccess.Info{Kinds: []string{"const", "ip"}, ByClientIP: true}},
		{"first of", FirstOf(user, apiKey, bearer, apiKey, IP(nil)), keyaccess.Info{
			Kinds: []string{"usr", "ip"}, Challenges: []string{challenge, "Bearer"}, Identity: true, ByClientIP: true, Unknown: true,
		}},
		{"deep", Join(FirstOf(apiKey, Join(IP(nil), custom)), Route()), keyaccess.Info{
			Kinds: []string{"usr", "ip", "cert", "rt"}, Challenges: []string{challenge}, Identity: true, ByClientIP: true, Unknown: true,
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := tt.key.Inspect()
			got.Forms = nil // see TestForms
			if err != nil || !reflect.DeepEqual(got, tt.want) {
				t.Errorf("got %+v, %v, want %+v", got, err, tt.want)
			}
		})
	}
}

func trusting(texts ...string) Key {
	var prefixes []netip.Prefix
	for _, text := range texts {
		prefixes = append(prefixes, netip.MustParsePrefix(text))
	}
	return IP(&IPOptions{Trusted: prefixes})
}

// Prefixes that leave one address are the user's business.
func TestNearlyEveryAddressMayBeTrusted(t *testing.T) {
	var all []string
	for bits := 1; bits <= 32; bits++ { // all but 255.255.255.255
		n := ^uint32(0) << (32 - bits) << 1
		a := netip.AddrFrom4([4]byte{byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)})
		all = append(all, netip.PrefixFrom(a, bits).String())
	}
	if _, err := trusting(all...).Inspect(); err != nil {
		t.Errorf("%v: got %v, want no misconfiguration", all, err)
	}
	if _, err := trusting(append(all, "255.255.255.255/32")...).Inspect(); err == nil {
		t.Errorf("got no misconfiguration with the last address, want one")
	}
}

// A single address is a prefix of all its bits.
func TestOneAddressIsTrusted(t *testing.T) {
	for _, text := range []string{"10.0.0.1", "fd00::1"} {
		a := netip.MustParseAddr(text)
		key := IP(&IPOptions{Trusted: []netip.Prefix{netip.PrefixFrom(a, a.BitLen())}})
		for peer, trusted := range map[netip.Addr]bool{a: true, a.Next(): false} {
			r := forwardedRequest(netip.AddrPortFrom(peer, 80).String(), "X-Forwarded-For", []string{"1.2.3.4"})
			if got, err := key.Of(r); err != nil || (got == "ip=1.2.3.4") != trusted {
				t.Errorf("%s, asked by %s: got %q, %v, want it trusted: %v", text, peer, got, err, trusted)
			}
		}
	}
}
