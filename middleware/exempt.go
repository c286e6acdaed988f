package ratelimit

import (
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"strings"

	"github.com/penstock-go/penstock/keyfunc"
)

// validateExempt reports every misconfigured prefix. clientIP finds the clients'
// addresses.
func validateExempt(prefixes []netip.Prefix, clientIP keyfunc.Key) error {
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
			r := &http.Request{Method: http.MethodGet, URL: new(url.URL), Header: http.Header{}, RemoteAddr: netip.AddrPortFrom(p.Addr(), 1).String()}
			if key, _, err := clientIP.Append(nil, &keyfunc.Request{Request: r}); err == nil && !covers(p, string(key)) {
				refuse(p, fmt.Sprintf("is never matched: ClientIP makes its addresses %q", key))
			}
		}
	}
	return errors.Join(errs...)
}

// covers reports whether p contains all addresses of a key of keyfunc.IP. An
// IPv6 key has many.
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

// exempt reports whether the client of the request is exempt. A client whose address
// cannot be found is not.
func (q *request) exempt() bool {
	start := len(q.keys)
	keys, _, err := q.m.clientIP.Append(q.keys, &q.http)
	if err != nil {
		return false
	}
	q.keys = keys
	key := q.text(start, len(keys))
	q.keys = keys[:start]
	for _, p := range q.m.exempt {
		if covers(p, key) {
			return true
		}
	}
	return false
}
