package keyfunc

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/penstock-go/penstock/internal/draw"
)

// anyKey is a lookup that knows one account by every key.
func anyKey(context.Context, string) (Identity, error) { return Identity{ID: "1", Tier: "gold"}, nil }

// userOf is a function for User.
func userOf(id Identity, ok bool) func(context.Context) (Identity, bool) {
	return func(context.Context) (Identity, bool) { return id, ok }
}

// request returns a GET request with the header fields of name, value pairs.
func request(fields ...string) *http.Request {
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	for i := 0; i < len(fields); i += 2 {
		r.Header.Add(fields[i], fields[i+1])
	}
	return r
}

// checkText fails unless s is kind=value in visible ASCII without braces.
func checkText(t *testing.T, s string) {
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

func TestZeroKeyCountsNoClient(t *testing.T) {
	var k Key
	if info, err := k.Inspect(); err == nil || info.Address || info.Kinds != nil {
		t.Errorf("got %+v, %v, want an empty Info and an error", info, err)
	}
	if s, err := k.Of(request()); err == nil || s != "" {
		t.Errorf("got %q, %v from Of, want an error", s, err)
	}
}

// A policy holds a Key, and the middleware compares it with the zero Key.
func TestKeysAreComparable(t *testing.T) {
	a, b := Const("a"), Const("a")
	if same := a; a != same || a == b || a == (Key{}) || Const("") == (Key{}) {
		t.Error("got Keys equal that two calls made, or a Key that differs from its copy")
	}
}

func TestKeyTexts(t *testing.T) {
	custom := Custom("tenant", func(*http.Request) (string, error) { return "a b", nil })
	user := User(userOf(Identity{ID: "42|{x}%é\x00", Tier: "gold"}, true))
	r := request("X-Tenant", "1.2.3.4", "X|T", "v")
	for _, tt := range []struct {
		name string
		key  Key
		want string
	}{
		{"address", IP(nil), "ip=192.0.2.1"},
		{"peer", Peer(), "ip=192.0.2.1"},
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
			if _, err := tt.key.Inspect(); err != nil {
				t.Fatalf("got misconfiguration %v, want none", err)
			}
			got, err := tt.key.Of(r)
			if err != nil || got != tt.want {
				t.Errorf("got %q, %v, want %q", got, err, tt.want)
			}
			dst, _, err := tt.key.Append([]byte("p:"), &Request{Request: r})
			if err != nil || string(dst) != "p:"+tt.want {
				t.Errorf("got %q, %v from Append, want %q", dst, err, "p:"+tt.want)
			}
		})
	}
}

func TestErrorLeavesDstAsItWas(t *testing.T) {
	fails := Join(User(userOf(Identity{"1", "gold"}, true)), Header("X-None"))
	for _, k := range []Key{{}, fails, FirstOf(fails), APIKey("X-None", anyKey), Const("")} {
		dst, tier, err := k.Append([]byte("before"), &Request{Request: request()})
		if err == nil || string(dst) != "before" || tier != "" {
			t.Errorf("got %q, tier %q, %v, want %q and an error", dst, tier, err, "before")
		}
		if s, err := k.Of(request()); err == nil || s != "" {
			t.Errorf("got %q, %v from Of, want %q and an error", s, err, "")
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
	parts := func(v *draw.Values) []part {
		return draw.Some(v.Int(1, 3), func() part {
			return part{
				header: draw.Of(v, "A", "B", "A|B", "A%7CB"),
				value:  draw.Of(v, v.Text("a|%={} 7C\x00", 1, 4), "hdr.a=a", "a|hdr.b=b"),
			}
		})
	}
	text := func(t *testing.T, tuple []part) string {
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
	draw.Check(t, func(t *testing.T, v *draw.Values) {
		a, b := parts(v), parts(v)
		same := len(a) == len(b)
		for i := 0; same && i < len(a); i++ {
			same = a[i] == b[i]
		}
		if ka, kb := text(t, a), text(t, b); (ka == kb) != same {
			t.Fatalf("got keys %q and %q of %+v and %+v", ka, kb, a, b)
		}
	})
}
