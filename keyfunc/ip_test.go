package keyfunc

import (
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
)

// proxies are the trusted networks of the tests.
var proxies = []netip.Prefix{
	netip.MustParsePrefix("10.0.0.0/8"),
	netip.MustParsePrefix("192.168.1.1/32"),
	netip.MustParsePrefix("fd00::/8"),
}

const proxy = "10.0.0.1:4711"

// ipTests feed the table test and the fuzz seeds.
var ipTests = []struct {
	name string
	peer string
	xff  []string
	want string
}{
	{"direct", "1.2.3.4:80", nil, "1.2.3.4"},
	{"direct, no port", "1.2.3.4", nil, "1.2.3.4"},
	{"direct, IPv6", "[2001:db8:1:2:3:4:5:6]:80", nil, "2001:db8:1:2::/64"},
	{"direct, mapped", "[::ffff:1.2.3.4]:80", nil, "1.2.3.4"},
	{"direct, zone", "[fe80::1%eth0]:80", nil, "fe80::/64"},
	{"direct peer spoofs", "1.2.3.4:80", []string{"6.6.6.6"}, "1.2.3.4"},
	{"direct peer spoofs a proxy", "1.2.3.4:80", []string{"6.6.6.6, 10.0.0.1"}, "1.2.3.4"},
	{"mapped proxy is trusted", "[::ffff:10.0.0.1]:80", []string{"1.2.3.4"}, "1.2.3.4"},
	{"IPv6 proxy is trusted", "[fd00::1]:80", []string{"1.2.3.4"}, "1.2.3.4"},
	{"zoned proxy is trusted", "[fd00::1%eth0]:80", []string{"1.2.3.4"}, "1.2.3.4"},
	{"single address prefix", "192.168.1.1:80", []string{"1.2.3.4"}, "1.2.3.4"},
	{"beside the prefix", "192.168.1.2:80", []string{"1.2.3.4"}, "192.168.1.2"},

	{"unix socket", "@", []string{"1.2.3.4"}, "unknown"},
	{"no peer", "", []string{"1.2.3.4"}, "unknown"},
	{"garbage peer", "localhost:80", []string{"1.2.3.4"}, "unknown"},
	{"peer with leading zeros", "010.0.0.1:80", []string{"1.2.3.4"}, "unknown"},

	{"one entry", proxy, []string{"1.2.3.4"}, "1.2.3.4"},
	{"no header", proxy, nil, "10.0.0.1"},
	{"empty header", proxy, []string{""}, "unknown"},
	{"blank header", proxy, []string{" \t "}, "unknown"},
	{"spoofed left", proxy, []string{"6.6.6.6, 1.2.3.4"}, "1.2.3.4"},
	{"spoofed left with a proxy", proxy, []string{"6.6.6.6, 10.9.9.9, 1.2.3.4"}, "1.2.3.4"},
	{"chain", proxy, []string{"6.6.6.6, 1.2.3.4, 10.0.0.3, fd00::2"}, "1.2.3.4"},
	{"all trusted", proxy, []string{"10.0.0.4, 10.0.0.3, 10.0.0.2"}, "10.0.0.4"},
	{"two lines", proxy, []string{"6.6.6.6", "1.2.3.4"}, "1.2.3.4"},
	{"two lines, last trusted", proxy, []string{"6.6.6.6, 1.2.3.4", "10.0.0.2"}, "1.2.3.4"},
	{"two lines, last empty", proxy, []string{"6.6.6.6", ""}, "unknown"},
	{"two lines, first empty", proxy, []string{"", "10.0.0.2"}, "unknown"},
	{"spaces and tabs", proxy, []string{"6.6.6.6 ,\t 1.2.3.4 \t"}, "1.2.3.4"},
	{"no spaces", proxy, []string{"6.6.6.6,1.2.3.4,10.0.0.2"}, "1.2.3.4"},

	{"garbage is unknown", proxy, []string{"6.6.6.6, garbage"}, "unknown"},
	{"garbage behind a proxy is unknown", proxy, []string{"6.6.6.6, garbage, 10.0.0.2"}, "unknown"},
	{"unknown is unknown", proxy, []string{"6.6.6.6, unknown, 10.0.0.2"}, "unknown"},
	{"obfuscated is unknown", proxy, []string{"6.6.6.6, _hid, 10.0.0.2"}, "unknown"},
	{"empty entry is unknown", proxy, []string{"6.6.6.6, , 10.0.0.2"}, "unknown"},
	{"trailing comma is unknown", proxy, []string{"6.6.6.6,"}, "unknown"},
	{"only commas", proxy, []string{",,,"}, "unknown"},
	{"leading zeros are unknown", proxy, []string{"6.6.6.6, 01.2.3.4"}, "unknown"},
	{"octet too large", proxy, []string{"1.2.3.256"}, "unknown"},
	{"three octets", proxy, []string{"1.2.3"}, "unknown"},
	{"inner space", proxy, []string{"1.2.3.4 5.6.7.8"}, "unknown"},
	{"quotes", proxy, []string{`"1.2.3.4"`}, "unknown"},
	{"garbage left of the client", proxy, []string{"\x00|{}%, 1.2.3.4"}, "1.2.3.4"},
	{"not the Forwarded syntax", proxy, []string{"for=1.2.3.4"}, "unknown"},

	{"port", proxy, []string{"6.6.6.6, 1.2.3.4:8080"}, "1.2.3.4"},
	{"IPv6 with port", proxy, []string{"[2001:db8::1]:8080"}, "2001:db8::/64"},
	{"IPv6 in brackets", proxy, []string{"[2001:db8::1]"}, "2001:db8::/64"},
	{"IPv6 bare", proxy, []string{"2001:db8::1"}, "2001:db8::/64"},
	{"trusted with port", proxy, []string{"1.2.3.4, 10.0.0.2:80, [fd00::1]:80"}, "1.2.3.4"},
	{"IPv4 in brackets", proxy, []string{"[1.2.3.4]"}, "unknown"},
	{"open bracket", proxy, []string{"[2001:db8::1"}, "unknown"},
	{"only brackets", proxy, []string{"[]"}, "unknown"},
	{"one bracket", proxy, []string{"["}, "unknown"},
	{"no port behind the colon", proxy, []string{"1.2.3.4:"}, "unknown"},
	{"port too large", proxy, []string{"1.2.3.4:65536"}, "unknown"},
	{"port is a word", proxy, []string{"1.2.3.4:http"}, "unknown"},

	{"mapped client", proxy, []string{"::ffff:1.2.3.4"}, "1.2.3.4"},
	{"mapped client in hex", proxy, []string{"::ffff:102:304"}, "1.2.3.4"},
	{"mapped client in brackets", proxy, []string{"[::ffff:1.2.3.4]:80"}, "1.2.3.4"},
	{"another mapped client", proxy, []string{"::ffff:1.2.3.5"}, "1.2.3.5"},
	{"mapped hop is trusted", proxy, []string{"1.2.3.4, ::ffff:10.0.0.2"}, "1.2.3.4"},
	{"zone", proxy, []string{"2001:db8::1%anything/../"}, "2001:db8::/64"},
	{"zone in brackets", proxy, []string{"[2001:db8::1%a|b]:80"}, "2001:db8::/64"},
	{"zoned hop is trusted", proxy, []string{"1.2.3.4, fd00::1%x"}, "1.2.3.4"},
	{"same /64", proxy, []string{"2001:db8:1:2:ffff:ffff:ffff:ffff"}, "2001:db8:1:2::/64"},
	{"next /64", proxy, []string{"2001:db8:1:3::"}, "2001:db8:1:3::/64"},
	{"NAT64", proxy, []string{"64:ff9b::1.2.3.4"}, "64:ff9b::102:304"},
	{"NAT64, another", proxy, []string{"64:ff9b::1.2.3.5"}, "64:ff9b::102:305"},
	{"not NAT64", proxy, []string{"64:ff9b:1::1.2.3.5"}, "64:ff9b:1::/64"},
	{"Teredo", proxy, []string{"2001:0:4136:e378:8000:63bf:3fff:fdd2"}, "192.0.2.45"},
	{"Teredo, another port", proxy, []string{"2001:0:4136:e378:8000:1111:3fff:fdd2"}, "192.0.2.45"},
	{"6to4", proxy, []string{"2002:cb00:7107::1"}, "203.0.113.7"},
	{"6to4, another prefix", proxy, []string{"2002:cb00:7107:ffff::1"}, "203.0.113.7"},
	{"not 6to4", proxy, []string{"2003:cb00:7107::1"}, "2003:cb00:7107::/64"},
	{"6to4 peer", "[2002:cb00:7107:1::1]:80", nil, "203.0.113.7"},
	{"6to4, a private address inside", "[2002:a00:1:1::1]:80", nil, "2002:a00:1:1::/64"},
	{"Teredo, a loopback address inside", "[2001:0:1:2:3:4:80ff:fffe]:80", nil, "2001:0:1:2::/64"},
	{"Teredo peer", "[2001:0:4136:e378:8000:63bf:3fff:fdd2]:80", nil, "192.0.2.45"},
	{"not Teredo", proxy, []string{"2001:1:4136:e378:8000:63bf:3fff:fdd2"}, "2001:1:4136:e378::/64"},
}

func forwardedRequest(peer, header string, lines []string) *http.Request {
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.RemoteAddr = peer
	if lines != nil {
		r.Header[http.CanonicalHeaderKey(header)] = lines
	}
	return r
}

func TestIP(t *testing.T) {
	key := IP(&IPOptions{Trusted: proxies})
	for _, tt := range ipTests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := key.Of(forwardedRequest(tt.peer, "X-Forwarded-For", tt.xff))
			if err != nil || got != "ip="+tt.want {
				t.Errorf("got %q, %v, want %q", got, err, "ip="+tt.want)
			}
			// Without Trusted the header must not matter at all.
			with, _ := IP(nil).Of(forwardedRequest(tt.peer, "X-Forwarded-For", tt.xff))
			without, _ := IP(&IPOptions{}).Of(forwardedRequest(tt.peer, "X-Forwarded-For", nil))
			if with != without {
				t.Errorf("got %q of the peer with the header, want %q", with, without)
			}
		})
	}
}

func TestIPReadsTheNamedHeaderOnly(t *testing.T) {
	key := IP(&IPOptions{Trusted: proxies, Header: "x-real-ip"})
	r := forwardedRequest(proxy, "X-Forwarded-For", []string{"6.6.6.6"})
	r.Header.Set("Forwarded", "for=6.6.6.6")
	if got, _ := key.Of(r); got != "ip=10.0.0.1" {
		t.Errorf("got %q without the header, want %q", got, "ip=10.0.0.1")
	}
	r.Header.Set("X-Real-IP", "1.2.3.4")
	if got, _ := key.Of(r); got != "ip=1.2.3.4" {
		t.Errorf("got %q, want %q", got, "ip=1.2.3.4")
	}
	r.Header.Add("X-Real-IP", "1.2.3.5")
	if got, _ := key.Of(r); got != "ip=1.2.3.5" {
		t.Errorf("got %q of two lines, want %q", got, "ip=1.2.3.5")
	}
}

func TestIPv6Bits(t *testing.T) {
	for _, tt := range []struct {
		bits int
		peer string
		want string
	}{
		{0, "[2001:db8:1234:5678:9abc::1]:80", "ip=2001:db8:1234:5678::/64"},
		{16, "[2003:db8:1234:5678:9abc::1]:80", "ip=2003::/16"},
		{48, "[2001:db8:1234:5678:9abc::1]:80", "ip=2001:db8:1234::/48"},
		{56, "[2001:db8:1234:5678:9abc::1]:80", "ip=2001:db8:1234:5600::/56"},
		{127, "[2001:db8::3]:80", "ip=2001:db8::2/127"},
		{128, "[2001:db8::3]:80", "ip=2001:db8::3"},
		{16, "[::ffff:1.2.3.4]:80", "ip=1.2.3.4"},
		{16, "[64:ff9b::102:304]:80", "ip=64:ff9b::102:304"},
		{16, "[2001::34ff:8ef8]:80", "ip=203.0.113.7"},
		{128, "[2001::34ff:8ef8]:80", "ip=203.0.113.7"},
		{16, "[2002:cb00:7107:9::1]:80", "ip=203.0.113.7"},
		{128, "[2002:cb00:7107:9::1]:80", "ip=203.0.113.7"},
	} {
		r := forwardedRequest(tt.peer, "", nil)
		if got, err := IP(&IPOptions{IPv6Bits: tt.bits}).Of(r); err != nil || got != tt.want {
			t.Errorf("got %q, %v with %d bits, want %q", got, err, tt.bits, tt.want)
		}
	}
}

// The peer of a Unix socket is a proxy only if TrustUnix says so.
func TestTrustUnix(t *testing.T) {
	for _, tt := range []struct {
		name string
		o    IPOptions
		peer string
		xff  []string
		want string
	}{
		{"trusted", IPOptions{TrustUnix: true}, "@", []string{"6.6.6.6, 1.2.3.4"}, "ip=1.2.3.4"},
		{"a path", IPOptions{TrustUnix: true}, "/run/proxy.sock", []string{"1.2.3.4"}, "ip=1.2.3.4"},
		{"and a network", IPOptions{TrustUnix: true, Trusted: proxies}, "@", []string{"1.2.3.4, 10.0.0.2"}, "ip=1.2.3.4"},
		{"a network only", IPOptions{Trusted: proxies}, "@", []string{"1.2.3.4"}, "ip=unknown"},
		{"a health check", IPOptions{TrustUnix: true}, "@", nil, "ip=unknown"},
		{"unreadable", IPOptions{TrustUnix: true}, "@", []string{"1.2.3.4, x"}, "ip=unknown"},
		{"a peer with an address", IPOptions{TrustUnix: true}, "1.2.3.4:80", []string{"6.6.6.6"}, "ip=1.2.3.4"},
	} {
		if got, err := IP(&tt.o).Of(forwardedRequest(tt.peer, "X-Forwarded-For", tt.xff)); err != nil || got != tt.want {
			t.Errorf("%s: got %q, %v, want %q", tt.name, got, err, tt.want)
		}
	}
}

func TestIPCopiesItsOptions(t *testing.T) {
	o := &IPOptions{Trusted: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}}
	key := IP(o)
	o.Trusted[0] = netip.MustParsePrefix("1.0.0.0/8")
	o.Header, o.IPv6Bits = "X-Other", 32
	if got, _ := key.Of(forwardedRequest(proxy, "X-Forwarded-For", []string{"2001:db8::1"})); got != "ip=2001:db8::/64" {
		t.Errorf("got %q, want %q", got, "ip=2001:db8::/64")
	}
}

// Entries left of the client must cost nothing, even by the thousand, and
// a whole chain of trusted hops must be linear.
func TestIPLongHeaders(t *testing.T) {
	key := IP(&IPOptions{Trusted: proxies})
	spoofed := []string{strings.Repeat("6.6.6.6, ", 100_000) + "1.2.3.4"}
	r := forwardedRequest(proxy, "X-Forwarded-For", spoofed)
	q, dst := &Request{Request: r}, make([]byte, 0, 64)
	if allocs := testing.AllocsPerRun(10, func() { dst, _, _ = key.Append(dst[:0], q) }); allocs != 0 {
		t.Errorf("got %v allocations, want 0", allocs)
	}
	if string(dst) != "ip=1.2.3.4" {
		t.Errorf("got %q, want %q", dst, "ip=1.2.3.4")
	}

	chain := []string{"1.2.3.4" + strings.Repeat(", 10.0.0.2", 1000)}
	for _, header := range []string{"X-Forwarded-For", "Forwarded"} {
		if header == "Forwarded" {
			chain[0] = "for=" + strings.ReplaceAll(chain[0], ", ", ", for=")
		}
		r := forwardedRequest(proxy, header, chain)
		if got, _ := IP(&IPOptions{Trusted: proxies, Header: header}).Of(r); got != "ip=1.2.3.4" {
			t.Errorf("got %q of %s, want %q", got, header, "ip=1.2.3.4")
		}
	}
}
