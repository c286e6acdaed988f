package exempt

import (
	"net/netip"
	"strings"
	"testing"
)

func TestContains(t *testing.T) {
	prefixes := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("2001:db8::/48")}
	for key, want := range map[string]bool{
		"ip=10.1.2.3": true, "ip=11.1.2.3": false, "ip=2001:db8::/64": true, "ip=2001:db8::/32": false, "ip=unknown": false, "usr=10.1.2.3": false, "": false,
	} {
		if got := Contains(prefixes, key); got != want {
			t.Errorf("%q: got %t, want %t", key, got, want)
		}
	}
}

func TestValidate(t *testing.T) {
	keysOf := func(a netip.Addr) []string {
		if a.Is6() {
			return []string{"ip=" + netip.PrefixFrom(a, 64).Masked().String()}
		}
		return []string{"ip=" + a.String()}
	}
	for text, want := range map[string]string{
		"10.0.0.0/8": "", "10.9.0.0/16": "", "2001:db8::/64": "", "2001:db8::1/128": "is never matched", "10.0.0.1/8": "write \"10.0.0.0/8\"",
		"0.0.0.0/0": "all addresses", "::ffff:10.0.0.0/104": "IPv4-mapped",
	} {
		err := Validate([]netip.Prefix{netip.MustParsePrefix(text)}, keysOf)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", text, err, want)
		}
	}
	if err := Validate([]netip.Prefix{{}, {}}, keysOf); err == nil || strings.Count(err.Error(), "is not valid") != 2 {
		t.Errorf("got %v, want each prefix named", err)
	}
}
