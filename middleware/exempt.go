package middleware

import (
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"strings"

	"github.com/penstock-go/penstock/keyfunc"
)

// validateExempt returns every mistake in the prefixes at once, for clients that
// clientIP finds.
func validateExempt(prefixes []netip.Prefix, clientIP keyfunc.Key) error {
	var errs []error
	mistake := func(p netip.Prefix, text string) {
		errs = append(errs, fmt.Errorf("middleware: Exempt: the prefix %q %s", p, text))
	}
	for _, p := range prefixes {
		switch {
		case !p.IsValid():
			mistake(p, "is not valid")
		case p.Addr().Is4In6():
			mistake(p, "is IPv4-mapped; write it as IPv4")
		case p.Bits() == 0:
			mistake(p, "is everybody")
		case p != p.Masked():
			mistake(p, fmt.Sprintf("has bits behind its mask; write %q", p.Masked()))
		default:
			r := &http.Request{Method: http.MethodGet, URL: new(url.URL), Header: http.Header{}, RemoteAddr: netip.AddrPortFrom(p.Addr(), 1).String()}
			if key, err := clientIP.Of(r); err == nil && !covers(p, key) {
				mistake(p, fmt.Sprintf("is never matched: ClientIP makes its addresses %q", key))
			}
		}
	}
	return errors.Join(errs...)
}

// covers reports whether all addresses of a key of keyfunc.IP, which are many if
// it is of IPv6, are within p.
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

// exempts reports whether the client of a request is exempt. Who cannot be found
// is not.
func (d *decision) exempts(m *Middleware, r *http.Request) bool {
	keys, err := m.clientIP.Append(d.keys, r)
	if err != nil {
		return false
	}
	start := len(d.keys)
	d.keys = keys
	key := d.key(start, len(keys))
	d.keys = keys[:start]
	for _, p := range m.exempt {
		if covers(p, key) {
			return true
		}
	}
	return false
}
