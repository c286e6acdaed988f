package keyfunc

import (
	"net/netip"
	"strings"
)

// parseAddr reads an address, with or without port and brackets; the zero Addr
// if s is none. It unmaps the address, and drops the zone: otherwise each zone
// that a client makes up would be another client.
func parseAddr(s string) netip.Addr {
	var a netip.Addr
	var err error
	switch {
	case len(s) > 0 && s[0] == '[' && s[len(s)-1] == ']':
		a, err = netip.ParseAddr(s[1 : len(s)-1])
		if err == nil && a.Is4() {
			return netip.Addr{}
		}
	case len(s) > 0 && s[0] == '[', strings.Count(s, ":") == 1:
		var ap netip.AddrPort
		ap, err = netip.ParseAddrPort(s)
		a = ap.Addr()
	default:
		a, err = netip.ParseAddr(s)
	}
	if err != nil {
		return netip.Addr{}
	}
	// Unmap comes first: masked to 64 bits, all mapped addresses are one.
	return a.Unmap().WithZone("")
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
