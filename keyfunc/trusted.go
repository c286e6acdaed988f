// Which peers IPOptions trust.

package keyfunc

import (
	"errors"
	"net/netip"
)

// checkAllTrusted returns the misconfigurations of each prefix, and of all
// together.
func checkAllTrusted(prefixes []netip.Prefix) error {
	var errs []error
	for _, p := range prefixes {
		errs = append(errs, checkTrusted(p))
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	family := ""
	switch {
	case contain(prefixes, netip.PrefixFrom(netip.IPv4Unspecified(), 0)):
		family = "IPv4"
	case contain(prefixes, netip.PrefixFrom(netip.IPv6Unspecified(), 0)):
		family = "IPv6"
	default:
		return nil
	}
	return misconfigurationf("IP: the trusted prefixes together contain every %s address, so every client could forge one; "+
		"name the proxies, or count them in Hops", family)
}

// contain reports whether the prefixes together contain all addresses of p.
func contain(prefixes []netip.Prefix, p netip.Prefix) bool {
	parts := false // some prefixes contain a part of p
	for _, one := range prefixes {
		if one.Overlaps(p) && one.Bits() <= p.Bits() {
			return true
		}
		parts = parts || one.Overlaps(p)
	}
	if !parts {
		return false
	}
	upper := p.Addr().AsSlice()
	upper[p.Bits()/8] |= 0x80 >> (p.Bits() % 8)
	second, _ := netip.AddrFromSlice(upper)
	return contain(prefixes, netip.PrefixFrom(p.Addr(), p.Bits()+1)) && contain(prefixes, netip.PrefixFrom(second, p.Bits()+1))
}

func checkTrusted(p netip.Prefix) error {
	switch {
	case !p.IsValid():
		return misconfigurationf("IP: trusted prefix %q is not valid", p)
	case p.Addr().Is4In6():
		// Addresses are unmapped before the comparison, so it never matches.
		return misconfigurationf("IP: trusted prefix %q is IPv4-mapped; write it as IPv4", p)
	case p.Bits() == 0:
		return misconfigurationf("IP: trusted prefix %q contains every address, so every client could forge one; "+
			"name the proxies, or count them in Hops", p)
	case p != p.Masked():
		return misconfigurationf("IP: trusted prefix %q has bits behind its mask; write %q", p, p.Masked())
	}
	return nil
}
