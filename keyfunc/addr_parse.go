package keyfunc

import (
	"net/netip"
	"strings"
)

// cutIPv4 cuts the port off a peer of IPv4, as net/http writes nearly every
// peer. The rest is already the canonical text. Cutting takes 20 ns; parsing
// the address and writing it again takes 70 ns. cutIPv4 reports false for all
// other texts, and also for some that parseAddr reads.
func cutIPv4(s string) (string, bool) {
	dots, digits, octet := 0, 0, 0
	for i := range len(s) {
		switch c := s[i]; {
		case '0' <= c && c <= '9' && (digits == 0 || octet > 0): // no leading zeros
			digits++
			if octet = octet*10 + int(c-'0'); octet > 255 {
				return "", false
			}
		case c == '.' && digits > 0 && dots < 3:
			dots, digits, octet = dots+1, 0, 0
		case c == ':' && digits > 0 && dots == 3:
			return s[:i], plainPort(s[i+1:])
		default:
			return "", false
		}
	}
	return "", false
}

// plainPort reports whether s is a port of at most five digits.
func plainPort(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return len(s) > 0 && (len(s) < 5 || len(s) == 5 && s <= "65535")
}

// parseAddr reads an address, with or without port and brackets. It unmaps the
// address, and drops the zone: otherwise each zone that a client makes up would
// be another client.
func parseAddr(s string) (netip.Addr, bool) {
	var a netip.Addr
	var err error
	switch {
	case len(s) > 0 && s[0] == '[' && s[len(s)-1] == ']':
		a, err = netip.ParseAddr(s[1 : len(s)-1])
		if err == nil && a.Is4() {
			return netip.Addr{}, false
		}
	case len(s) > 0 && s[0] == '[', strings.Count(s, ":") == 1:
		var ap netip.AddrPort
		ap, err = netip.ParseAddrPort(s)
		a = ap.Addr()
	default:
		a, err = netip.ParseAddr(s)
	}
	// Unmap comes first: masked to 64 bits, all mapped addresses are one.
	return a.Unmap().WithZone(""), err == nil
}

var (
	nat64  = netip.MustParsePrefix("64:ff9b::/96")
	teredo = netip.MustParsePrefix("2001::/32")
	sixTo4 = netip.MustParsePrefix("2002::/16")
)

// tunnelled returns the IPv4 address of a client that reaches IPv6 through 6to4
// or Teredo, or a itself. With one IPv4 address, such a client has 65 536
// prefixes of 64 bits, or an address for each of its ports. Only public IPv4
// addresses can reach the other end (RFC 3056, section 2): one of another kind is
// made up, perhaps to pass for a host of the service.
func tunnelled(a netip.Addr) netip.Addr {
	b, inside := a.As16(), a
	switch {
	case sixTo4.Contains(a):
		inside = netip.AddrFrom4([4]byte(b[2:6]))
	case teredo.Contains(a): // RFC 4380, section 4: each bit is inverted
		inside = netip.AddrFrom4([4]byte{^b[12], ^b[13], ^b[14], ^b[15]})
	}
	if !inside.IsGlobalUnicast() || inside.IsPrivate() {
		return a
	}
	return inside
}

// trimOWS trims optional whitespace (RFC 9110, section 5.6.3).
func trimOWS(s string) string {
	return strings.Trim(s, " \t")
}
