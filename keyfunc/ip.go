package keyfunc

import (
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

const (
	defaultIPHeader = "X-Forwarded-For"
	defaultIPv6Bits = 64
	minIPv6Bits     = 16
)

// IPOptions says which proxies stand in front of the server. The zero value,
// like nil, means none: the client is the peer of the connection.
type IPOptions struct {
	// Trusted are the addresses of your own proxies. A forwarding header is
	// read only when the peer is one of them. Prefixes must be masked, must
	// not be IPv4-mapped, and must have at least one bit: trusting everybody
	// lets everybody forge an address.
	Trusted []netip.Prefix

	// Header is the one forwarding header that these proxies append to, or
	// overwrite: X-Forwarded-For when empty; Forwarded (RFC 7239) is read by
	// its own syntax, any other as a list of addresses, such as X-Real-IP. A
	// header that your proxies pass on untouched is the client's to forge. It
	// is a mistake to name one without Trusted.
	Header string

	// IPv6Bits is the length of the prefix, in bits, that counts as one
	// client, 16 to 128; 0 means 64, which is what one customer usually has.
	IPv6Bits int
}

// IP returns the Key ip=<address> of the client. A nil o means that there are
// no proxies, and the client is the peer of the connection, RemoteAddr.
//
// Behind proxies the client is found by walking their header from the right,
// over all its field lines, for as long as an entry is trusted: the first that
// is not is the client. If all are, it is the leftmost; without the header it
// is the peer. An entry that is not an address ends the walk at the trusted
// proxy that passed it on, for what stands left of it is not verified. Ports
// are ignored.
//
// An IPv4-mapped address is the IPv4 address, and zones are dropped. IPv6
// addresses are cut to IPv6Bits (ip=2001:db8:1:2::/64), but for NAT64
// (64:ff9b::/96, RFC 6052) and Teredo (2001::/32, RFC 4380), which hold the
// client in their last bits.
//
// A peer without an address, such as that of a Unix socket, has the key
// ip=unknown, and is never trusted. IP never fails on a request.
func IP(o *IPOptions) Key {
	if o == nil {
		o = &IPOptions{}
	}
	p, mistakes := newIPPolicy(o)
	k := newKey(func(dst []byte, r *http.Request) ([]byte, error) {
		return p.append(append(dst, "ip="...), r), nil
	}, mistakes...)
	k.peer = len(p.trusted) == 0
	return k
}

// An ipPolicy is IPOptions, checked and complete.
type ipPolicy struct {
	trusted   []netip.Prefix
	header    string
	forwarded bool // header is that of RFC 7239
	bits      int
}

func newIPPolicy(o *IPOptions) (*ipPolicy, []error) {
	var mistakes []error
	p := &ipPolicy{trusted: slices.Clone(o.Trusted), header: o.Header, bits: o.IPv6Bits}
	for _, t := range p.trusted {
		mistakes = append(mistakes, checkTrusted(t))
	}
	switch {
	case p.header != "":
		var mistake error
		p.header, mistake = headerName("IP", p.header)
		mistakes = append(mistakes, mistake)
		if len(p.trusted) == 0 {
			mistakes = append(mistakes, mistakef("IP: header %q without Trusted: "+
				"name the proxies that may set it", p.header))
		}
	case len(p.trusted) > 0:
		p.header = defaultIPHeader
	}
	p.forwarded = p.header == "Forwarded"
	if p.bits == 0 {
		p.bits = defaultIPv6Bits
	}
	if p.bits < minIPv6Bits || p.bits > 128 {
		mistakes = append(mistakes, mistakef("IP: IPv6Bits is %d, not 0 or %d to 128", o.IPv6Bits, minIPv6Bits))
	}
	return p, mistakes
}

func checkTrusted(p netip.Prefix) error {
	switch {
	case !p.IsValid():
		return mistakef("IP: a trusted prefix, %q, is not valid", p)
	case p.Addr().Is4In6():
		// Addresses are unmapped before they are looked up, so it never matches.
		return mistakef("IP: trusted prefix %q is IPv4-mapped; write it as IPv4", p)
	case p.Bits() == 0:
		return mistakef("IP: trusted prefix %q is everybody, so anybody could forge an address", p)
	case p != p.Masked():
		return mistakef("IP: trusted prefix %q has bits behind its mask; write %q", p, p.Masked())
	}
	return nil
}

func (p *ipPolicy) append(dst []byte, r *http.Request) []byte {
	if len(p.trusted) == 0 {
		if text, ok := cutIPv4(r.RemoteAddr); ok {
			return append(dst, text...)
		}
	}
	peer, ok := parseAddr(r.RemoteAddr)
	if !ok {
		return append(dst, "unknown"...)
	}
	return p.appendAddr(dst, p.client(peer, r.Header))
}

// client returns who is behind the peer.
func (p *ipPolicy) client(peer netip.Addr, h http.Header) netip.Addr {
	if !p.trusts(peer) {
		return peer
	}
	if p.forwarded {
		return p.walkForwarded(peer, h[p.header])
	}
	return p.walkList(peer, h[p.header])
}

// walkList walks the comma-separated addresses of the lines from the right.
// It looks at one entry at a time: a header may have thousands, and those left
// of the client mean nothing.
func (p *ipPolicy) walkList(client netip.Addr, lines []string) netip.Addr {
	for _, line := range slices.Backward(lines) {
		for more := true; more; {
			var entry string
			line, entry, more = cutLastEntry(line)
			a, ok := parseAddr(entry)
			if !ok {
				return client
			}
			if client = a; !p.trusts(a) {
				return client
			}
		}
	}
	return client
}

// cutLastEntry cuts the last element off a comma-separated list. An empty one
// counts: a proxy that knows no address may append it, and skipping it would
// let what the client has sent before it speak for the proxy.
func cutLastEntry(list string) (rest, entry string, more bool) {
	i := strings.LastIndexByte(list, ',')
	if i < 0 {
		return "", trimOWS(list), false
	}
	return list[:i], trimOWS(list[i+1:]), true
}

func (p *ipPolicy) trusts(a netip.Addr) bool {
	for _, t := range p.trusted {
		if t.Contains(a) {
			return true
		}
	}
	return false
}

var (
	nat64  = netip.MustParsePrefix("64:ff9b::/96")
	teredo = netip.MustParsePrefix("2001::/32")
)

// appendAddr appends the address, or the prefix that counts as one client.
func (p *ipPolicy) appendAddr(dst []byte, a netip.Addr) []byte {
	if a.Is4() || p.bits == 128 || nat64.Contains(a) || teredo.Contains(a) {
		return a.AppendTo(dst)
	}
	return netip.PrefixFrom(a, p.bits).Masked().AppendTo(dst)
}

// cutIPv4 cuts the port off a peer of IPv4 as net/http writes it, which is
// nearly every peer: the address is its own canonical text then, and 20 ns do
// what parsing it and writing it again take 70 ns for. It reports false for
// whatever is not plainly that, also for some of what parseAddr reads.
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

// parseAddr reads an address, with or without port and brackets, unmapped and
// without its zone: else each zone a client makes up would be another client.
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

// trimOWS trims optional whitespace (RFC 9110, section 5.6.3).
func trimOWS(s string) string {
	return strings.Trim(s, " \t")
}
