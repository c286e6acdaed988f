// Package exempt says which addresses no policy counts.
package exempt

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// Validate reports every misconfigured prefix. keysOf returns the keys of a client's address.
func Validate(prefixes []netip.Prefix, keysOf func(netip.Addr) []string) error {
	var errs []error
	refuse := func(p netip.Prefix, text string) {
		errs = append(errs, fmt.Errorf("ratelimit: Exempt: the prefix %q %s", p, text))
	}
	for _, p := range prefixes {
		switch {
		case !p.IsValid():
			refuse(p, "is not valid")
		case p.Addr().Is4In6():
			refuse(p, "is IPv4-mapped: write it as IPv4")
		case p.Bits() == 0:
			refuse(p, "contains all addresses")
		case p != p.Masked():
			refuse(p, fmt.Sprintf("has bits behind its mask: write %q", p.Masked()))
		default:
			for _, key := range keysOf(p.Addr()) {
				if !covers(p, key) {
					refuse(p, fmt.Sprintf("is never matched: ClientIP makes its addresses %q", key))
				}
			}
		}
	}
	return errors.Join(errs...)
}

// Contains reports whether one of the prefixes contains all addresses of a key of keyfunc.IP.
func Contains(prefixes []netip.Prefix, key string) bool {
	return slices.ContainsFunc(prefixes, func(p netip.Prefix) bool { return covers(p, key) })
}

// covers reports whether p contains all addresses of a key. An IPv6 key has many.
func covers(p netip.Prefix, key string) bool {
	text, ok := strings.CutPrefix(key, "ip=")
	if !ok {
		return false
	}
	if strings.Contains(text, "/") {
		clients, err := netip.ParsePrefix(text)
		return err == nil && p.Bits() <= clients.Bits() && p.Contains(clients.Addr())
	}
	a, err := netip.ParseAddr(text)
	return err == nil && p.Contains(a)
}
