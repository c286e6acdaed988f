package keyfunc

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

var testSecret = []byte("0123456789abcdef")

func anyKey(string) bool { return true }

// request returns a GET request with the header fields of name, value pairs.
func request(fields ...string) *http.Request {
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	for i := 0; i < len(fields); i += 2 {
		r.Header.Add(fields[i], fields[i+1])
	}
	return r
}

// checkText fails unless s is what every key must be.
func checkText(t interface {
	Helper()
	Fatalf(string, ...any)
}, s string) {
	t.Helper()
	kind, value, ok := strings.Cut(s, "=")
	if !ok || kind == "" || value == "" {
		t.Fatalf("got key %q, want kind=value", s)
	}
	for i := 0; i < len(s); i++ {
		if s[i] < 0x21 || s[i] > 0x7E || s[i] == '{' || s[i] == '}' {
			t.Fatalf("got byte %#x in key %q, want visible ASCII without braces", s[i], s)
		}
	}
}

func TestZeroKeyIsAMistake(t *testing.T) {
	var k Key
	if !k.IsZero() || Const("x").IsZero() || Const("").IsZero() {
		t.Error("got IsZero wrong, want it true for the zero Key only")
	}
	if k.Validate() == nil {
		t.Error("got no mistake, want one")
	}
	if _, err := k.Of(request()); err == nil {
		t.Error("got no error from Of, want one")
	}
}

func TestKeyTexts(t *testing.T) {
	custom := Custom("tenant", func(*http.Request) (string, error) { return "a b", nil })
	user := User(func(context.Context) string { return "42|{x}%é\x00" })
	r := request("X-Tenant", "1.2.3.4", "X|T", "v")
	for _, tt := range []struct {
		name string
		key  Key
		want string
	}{
		{"peer", IP(nil), "ip=192.0.2.1"},
		{"header is not the address", Header("X-Tenant"), "hdr.x-tenant=1.2.3.4"},
		{"header name is escaped", Header("x|t"), "hdr.x%7Ct=v"},
		{"user is escaped", user, "usr=42%7C%7Bx%7D%25%C3%A9%00"},
		{"const", Const("all of us"), "const=all%20of%20us"},
		{"custom", custom, "tenant=a%20b"},
		{"no router", Route(), "rt=unmatched"},
		{"join", Join(custom, Const("a|b"), Route()), "tenant=a%20b|const=a%7Cb|rt=unmatched"},
		{"nested join", Join(Join(Const("a"), Const("b")), Const("c")), "const=a|const=b|const=c"},
		{"first of", FirstOf(Header("X-None"), Const("c"), custom), "const=c"},
		{"the edges of ASCII", Const("!~\x7f\x1f "), "const=!~%7F%1F%20"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if err := tt.key.Validate(); err != nil {
				t.Fatalf("got mistake %v, want none", err)
			}
			got, err := tt.key.Of(r)
			if err != nil || got != tt.want {
				t.Errorf("got %q, %v, want %q", got, err, tt.want)
			}
			dst, err := tt.key.Append([]byte("p:"), r)
			if err != nil || string(dst) != "p:"+tt.want {
				t.Errorf("got %q, %v from Append, want %q", dst, err, "p:"+tt.want)
			}
		})
	}
}

func TestErrorLeavesDstAsItWas(t *testing.T) {
	fails := Join(Const("a"), Header("X-None"))
	for _, k := range []Key{{}, fails, FirstOf(fails), APIKey("X-None", testSecret, anyKey), Const("")} {
		dst, err := k.Append([]byte("before"), request())
		if err == nil || string(dst) != "before" {
			t.Errorf("got %q, %v, want %q and an error", dst, err, "before")
		}
		if s, err := k.Of(request()); err == nil || s != "" {
			t.Errorf("got %q, %v from Of, want %q and an error", s, err, "")
		}
	}
}

func TestMistakes(t *testing.T) {
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
		{"everybody, IPv4", trusted(prefix("0.0.0.0/0")), "everybody"},
		{"everybody, IPv6", trusted(prefix("::/0")), "everybody"},
		{"header without trusted", IP(&IPOptions{Header: "X-Real-IP"}), `"X-Real-Ip" without Trusted`},
		{"bad header", IP(&IPOptions{Trusted: []netip.Prefix{prefix("10.0.0.0/8")}, Header: "a b"}), `"a b"`},
		{"bits too few", IP(&IPOptions{IPv6Bits: 15}), "IPv6Bits is 15"},
		{"bits too many", IP(&IPOptions{IPv6Bits: 129}), "IPv6Bits is 129"},
		{"bits negative", IP(&IPOptions{IPv6Bits: -1}), "IPv6Bits is -1"},
		{"short secret", APIKey("X-Key", testSecret[:15], anyKey), "15 bytes"},
		{"nobody knows", APIKey("X-Key", testSecret, nil), "known is nil"},
		{"api key header", APIKey("", testSecret, anyKey), `""`},
		{"header empty", Header(""), `""`},
		{"header not a token", Header("X Tenant"), `"X Tenant"`},
		{"header host", Header("host"), "Request.Host"},
		{"header with secrets", Header("authorization"), "APIKey"},
		{"header with cookies", Header("Cookie"), "APIKey"},
		{"user nil", User(nil), "nil"},
		{"const empty", Const(""), "empty"},
		{"mux nil", RouteIn(nil), "nil"},
		{"custom nil", Custom("x", nil), "nil"},
		{"kind empty", custom(""), `""`},
		{"kind upper-case", custom("Tenant"), `"Tenant"`},
		{"kind digit first", custom("1a"), `"1a"`},
		{"kind separator", custom("a|b"), `"a|b"`},
		{"kind too long", custom(strings.Repeat("a", 33)), "31"},
		{"kind reserved", custom("usr"), `"usr"`},
		{"kind of headers", custom("hdr"), `"hdr"`},
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
			err := tt.key.Validate()
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Fatalf("got %v, want a mistake with %q", err, tt.want)
			}
			for line := range strings.Lines(err.Error()) {
				if !strings.HasPrefix(line, "keyfunc: ") {
					t.Errorf("got line %q, want prefix %q", line, "keyfunc: ")
				}
			}
			if s, err := tt.key.Of(request("X-Key", "k", "X-Tenant", "t")); err == nil {
				t.Errorf("got key %q in spite of the mistake, want an error", s)
			}
		})
	}
}

func TestValidateReportsAllMistakes(t *testing.T) {
	bad := &IPOptions{Trusted: []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0"), {}}, Header: "a b", IPv6Bits: 200}
	k := Join(FirstOf(Route(), APIKey("", nil, nil)), Join(), IP(bad), Custom("IP", nil))
	if got, want := strings.Count(k.Validate().Error(), "\n")+1, 11; got != want {
		t.Errorf("got %d mistakes, want %d:\n%v", got, want, k.Validate())
	}
}

func TestValidKeysHaveNoMistake(t *testing.T) {
	trusted := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fd00::/8")}
	for _, k := range []Key{
		IP(nil), IP(&IPOptions{}), IP(&IPOptions{Trusted: trusted, Header: "cf-connecting-ip", IPv6Bits: 128}),
		IP(&IPOptions{IPv6Bits: 16}), Join(Const("a"), Route()), FirstOf(Route(), Const("a")),
		Custom("a-1", func(*http.Request) (string, error) { return "", nil }),
	} {
		if err := k.Validate(); err != nil {
			t.Errorf("got %v, want no mistake", err)
		}
	}
}

// unescape is the inverse of appendEscaped, which shows that there is one.
func unescape(s string) (string, error) {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '%' {
			b.WriteByte(s[i])
			continue
		}
		if len(s) < i+3 {
			return "", errors.New("short escape")
		}
		hi, lo := strings.IndexByte(upperHex, s[i+1]), strings.IndexByte(upperHex, s[i+2])
		if hi < 0 || lo < 0 {
			return "", errors.New("bad escape")
		}
		b.WriteByte(byte(hi<<4 | lo))
		i += 2
	}
	return b.String(), nil
}

func FuzzEscape(f *testing.F) {
	for _, s := range []string{"", "42", "a b", "a|b", "%7C", "%", "{}", "}", "\x00", "é", "\xff\xfe", "1.2.3.4", "~!"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		escaped := string(appendEscaped(nil, s))
		if strings.ContainsAny(escaped, "|{} ") {
			t.Errorf("got %q for %q, want no separators", escaped, s)
		}
		if back, err := unescape(escaped); err != nil || back != s {
			t.Errorf("got %q, %v back from %q, want %q", back, err, escaped, s)
		}
		if s != "" {
			checkText(t, "x="+escaped)
		}
	})
}

// Different tuples of values make different keys, and equal ones equal keys.
func TestJoinIsInjective(t *testing.T) {
	type part struct{ header, value string }
	// Few and awkward values, so that tuples are often nearly alike.
	parts := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) part {
		return part{
			header: rapid.SampledFrom([]string{"A", "B", "A|B", "A%7CB"}).Draw(t, "header"),
			value:  rapid.StringMatching(`[a|%={} 7C\x00]{1,4}|hdr\.a=a|a\|hdr\.b=b`).Draw(t, "value"),
		}
	}), 1, 3)
	text := func(t *rapid.T, tuple []part) string {
		var keys []Key
		for _, p := range tuple {
			keys = append(keys, Custom("v", func(*http.Request) (string, error) { return p.value, nil }), Header(p.header))
		}
		r := request("A", "1", "B", "1")
		r.Header["A|b"], r.Header["A%7cb"] = []string{"1"}, []string{"1"}
		s, err := Join(keys...).Of(r)
		if err != nil {
			t.Fatalf("got %v, want a key of %+v", err, tuple)
		}
		checkText(t, s)
		return s
	}
	rapid.Check(t, func(t *rapid.T) {
		a, b := parts.Draw(t, "a"), parts.Draw(t, "b")
		same := len(a) == len(b)
		for i := 0; same && i < len(a); i++ {
			same = a[i] == b[i]
		}
		if ka, kb := text(t, a), text(t, b); (ka == kb) != same {
			t.Fatalf("got keys %q and %q of %+v and %+v", ka, kb, a, b)
		}
	})
}
