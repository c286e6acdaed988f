package keyfunc

import "testing"

// forwardedTests feed the table test and the fuzz seeds. The peer is trusted.
var forwardedTests = []struct {
	name  string
	lines []string
	want  string
}{
	{"none", nil, "10.0.0.1"},
	{"empty", []string{""}, "unknown"},
	{"token", []string{"for=1.2.3.4"}, "1.2.3.4"},
	{"quoted", []string{`for="1.2.3.4"`}, "1.2.3.4"},
	{"port", []string{`for="1.2.3.4:47011"`}, "1.2.3.4"},
	{"IPv6", []string{`for="[2001:db8:cafe::17]"`}, "2001:db8:cafe::/64"},
	{"IPv6 with port", []string{`for="[2001:db8:cafe::17]:4711"`}, "2001:db8:cafe::/64"},
	{"mapped", []string{`for="[::ffff:1.2.3.4]"`}, "1.2.3.4"},
	{"any case", []string{`FOR=1.2.3.4`}, "1.2.3.4"},
	{"other parameters", []string{"for=1.2.3.4;proto=http;by=203.0.113.43"}, "1.2.3.4"},
	{"for is not first", []string{"proto=http;host=\"a,b;c\"; for=1.2.3.4"}, "1.2.3.4"},
	{"comma in quotes", []string{`for=6.6.6.6, for=1.2.3.4;host="a,b;c"`}, "1.2.3.4"},
	{"chain", []string{"for=6.6.6.6, for=1.2.3.4, for=10.0.0.2"}, "1.2.3.4"},
	{"no spaces", []string{"for=6.6.6.6,for=1.2.3.4,for=10.0.0.2"}, "1.2.3.4"},
	{"all trusted", []string{"for=10.0.0.3, for=10.0.0.2"}, "10.0.0.3"},
	{"two lines", []string{"for=6.6.6.6", "for=1.2.3.4"}, "1.2.3.4"},
	{"two lines, last trusted", []string{"for=6.6.6.6, for=1.2.3.4", "for=10.0.0.2"}, "1.2.3.4"},

	{"unknown is unknown", []string{"for=6.6.6.6, for=unknown, for=10.0.0.2"}, "unknown"},
	{"obfuscated is unknown", []string{"for=6.6.6.6, for=_hid"}, "unknown"},
	{"obfuscated port is unknown", []string{`for=6.6.6.6, for="1.2.3.4:_hid"`}, "unknown"},
	{"no for is unknown", []string{"for=6.6.6.6, proto=https"}, "unknown"},
	{"empty for is unknown", []string{"for=6.6.6.6, for="}, "unknown"},
	{"two for are unknown", []string{"for=1.2.3.4;for=6.6.6.6"}, "unknown"},
	{"two for, one empty", []string{"for=6.6.6.6;for="}, "unknown"},
	{"empty element is unknown", []string{"for=6.6.6.6, , for=10.0.0.2"}, "unknown"},
	{"a bare address", []string{"1.2.3.4"}, "unknown"},
	{"space around =", []string{"for =1.2.3.4"}, "unknown"},
	{"garbage behind the quotes", []string{`for="1.2.3.4" x`}, "unknown"},
	{"list in quotes", []string{`for="6.6.6.6, for=1.2.3.4"`}, "unknown"},

	{"open quote swallows nothing", []string{`for=6.6.6.6;x=", for=1.2.3.4`}, "1.2.3.4"},
	{"open quote in the for", []string{`for=", for=1.2.3.4`}, "1.2.3.4"},
	{"open quote meets the proxy's", []string{`for=6.6.6.6;x=", for="[2001:db8::1]"`}, "2001:db8::/64"},
	{"open quote in another line", []string{`for="`, `for=1.2.3.4`}, "1.2.3.4"},
	{"open quotes in two lines", []string{`for=6.6.6.6;x="`, `y="`}, "unknown"},
	{"quote without =", []string{`"for=6.6.6.6", for=1.2.3.4`}, "1.2.3.4"},
	{"quote within a token", []string{`for=6.6"6.6", for=1.2.3.4`}, "1.2.3.4"},
	{"token behind a quote", []string{`for="6.6.6.6"x, for=1.2.3.4`}, "1.2.3.4"},
	{"escaped quote", []string{`x="a\"b";for=6.6.6.6, for=1.2.3.4`}, "1.2.3.4"},
	{"escaped comma", []string{`x="\,y="z", for=1.2.3.4`}, "1.2.3.4"},
	{"escape outside quotes", []string{`x=\", for=1.2.3.4`}, "1.2.3.4"},
	{"quoted pairs in the address", []string{`for="1\.2.3.4"`}, "1.2.3.4"},
	{"quoted pairs in the proxy's element", []string{`for=6.6.6.6, host="a\"b, c\\";for=1.2.3.4`}, "1.2.3.4"},
	{"quoted pairs behind the address", []string{`for=6.6.6.6, for="1.2.3.4";host="\\\","`}, "1.2.3.4"},
	{"the proxy's own quote is open", []string{`for=6.6.6.6, for="1.2.3.4`}, "unknown"},
	{"only a quote", []string{`"`}, "unknown"},
}

func TestForwarded(t *testing.T) {
	key := IP(&IPOptions{Trusted: proxies, Header: "forwarded"})
	for _, tt := range forwardedTests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := key.Of(forwardedRequest(proxy, "Forwarded", tt.lines))
			if err != nil || got != "ip="+tt.want {
				t.Errorf("got %q, %v, want %q", got, err, "ip="+tt.want)
			}
			got, _ = key.Of(forwardedRequest("1.2.3.99:80", "Forwarded", tt.lines))
			if got != "ip=1.2.3.99" {
				t.Errorf("got %q from a peer that is not trusted, want %q", got, "ip=1.2.3.99")
			}
		})
	}
}
