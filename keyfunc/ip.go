package keyfunc

import (
	"errors"
	"net/http"
	"net/netip"
	"slices"

	"github.com/penstock-go/penstock/internal/keyaccess"
)

const (
	defaultIPHeader = "X-Forwarded-For"
	defaultIPv6Bits = 64
	minIPv6Bits     = 16
	maxHops         = 32
)

// IPOptions name the proxies in front of the server. The zero value, like nil,
// names none.
type IPOptions struct {
	// Trusted are the addresses of your own proxies. Prefixes must be masked, must
	// not be IPv4-mapped, and must not contain all addresses together. A single
	// address is netip.MustParsePrefix("192.0.2.1/32").
	Trusted []netip.Prefix

	// Header is the one forwarding header that these proxies append to, or
	// overwrite; empty means X-Forwarded-For. Forwarded (RFC 7239) has its own
	// syntax; any other is a list of addresses. If your proxies pass it on
	// untouched, clients forge it.
	Header string

	// Hops is the number of your proxies, 1 to 32, if their addresses are unknown.
	// The client is the entry at this place from the right. 0 means that Trusted
	// names the proxies.
	//
	// Every request must pass these proxies, and each must append one entry. If
	// the header has fewer entries, the client is the peer.
	Hops int

	// IPv6Bits is the length of the prefix that counts as one client, 16 to 128; 0
	// means 64. Providers give customers 64, 56 or 48 bits: count 48 beside it.
	IPv6Bits int
}

// proxied reports whether o has settings of proxies.
func (o *IPOptions) proxied() bool { return len(o.Trusted) > 0 || o.Header != "" || o.Hops != 0 }

// IP returns the Key ip=<address> of the client.
//
// Without proxy settings, it is [Request.ClientIP]'s, by default RemoteAddr.
//
// With Trusted, it walks the forwarding header from the right. The first
// untrusted entry is the client; if all are trusted, the leftmost is. An entry
// that is not an address ends the walk at the proxy that passed it on. With
// Hops, it counts entries instead.
//
// An IPv4-mapped address is the IPv4 address, and zones are dropped. IPv6
// addresses are cut to IPv6Bits (ip=2001:db8:1:2::/64), except NAT64
// (64:ff9b::/96) and Teredo (2001::/32). A peer without an address, such as a
// Unix socket, has the key ip=unknown.
func IP(o *IPOptions) Key {
	if o == nil {
		o = &IPOptions{}
	}
	p, misconfigurations := newIPPolicy(o)
	return newIPKey(p, misconfigurations...)
}

// Peer returns the Key ip=<address> of the connection's peer. IPv6 addresses
// are cut to 64 bits. Peer never fails on a request.
func Peer() Key {
	return newIPKey(&ipPolicy{bits: defaultIPv6Bits})
}

func newIPKey(p *ipPolicy, misconfigurations ...error) Key {
	k := newKey(func(dst []byte, q *Request) ([]byte, string, error) {
		finder, err := p.finder(q)
		if err != nil {
			return nil, "", err
		}
		return p.append(append(dst, "ip="...), finder, q.Request), "", nil
	}, Info{Kinds: []string{keyaccess.IP}, Address: true, ByClientIP: p.shared}, misconfigurations...)
	k.def.ip, k.def.ips = p, []*ipPolicy{p}
	return k
}

// An ipPolicy is IPOptions, checked and complete.
type ipPolicy struct {
	shared    bool // takes the address that Request.ClientIP finds
	trusted   []netip.Prefix
	hops      int
	header    string // empty without proxies
	forwarded bool   // header is Forwarded of RFC 7239
	bits      int
}

func newIPPolicy(o *IPOptions) (*ipPolicy, []error) {
	p := &ipPolicy{shared: !o.proxied(), trusted: slices.Clone(o.Trusted), hops: o.Hops, bits: o.IPv6Bits}
	var misconfigurations []error
	add := func(err error) { misconfigurations = append(misconfigurations, err) }
	if err := checkAllTrusted(p.trusted); err != nil {
		add(err)
	}
	if p.hops < 0 || p.hops > maxHops {
		add(misconfigurationf("IP: Hops is %d: want 0 to %d", p.hops, maxHops))
	}
	if p.hops != 0 && len(p.trusted) > 0 {
		add(misconfigurationf("IP: Hops and Trusted cannot be combined; name the proxies in Trusted, or count them in Hops"))
	}
	if o.Header != "" {
		var err error
		p.header, err = headerName("IP", o.Header)
		add(err)
		if p.hops == 0 && len(p.trusted) == 0 {
			add(misconfigurationf("IP: header %q without Trusted or Hops: name the proxies that may set it", p.header))
		}
	} else if !p.shared {
		p.header = defaultIPHeader
	}
	p.forwarded = p.header == "Forwarded"
	if p.bits == 0 {
		p.bits = defaultIPv6Bits
	}
	if p.bits < minIPv6Bits || p.bits > 128 {
		add(misconfigurationf("IP: IPv6Bits is %d: want 0, or %d to 128", o.IPv6Bits, minIPv6Bits))
	}
	return p, misconfigurations
}

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

var errNotAddress = errors.New("keyfunc: Request.ClientIP is neither an IP nor a Peer Key")

// finder returns the policy that finds the address for p: its own, or
// ClientIP's. A ClientIP without proxy settings finds the peer.
func (p *ipPolicy) finder(q *Request) (*ipPolicy, error) {
	c := q.ClientIP.def
	switch {
	case !p.shared || c == nil:
		return p, nil
	case c.err != nil:
		return nil, c.err
	case c.ip == nil:
		return nil, errNotAddress
	}
	return c.ip, nil
}

// append appends the address that finder finds, cut as p says.
func (p *ipPolicy) append(dst []byte, finder *ipPolicy, r *http.Request) []byte {
	if finder.header == "" {
		if text, ok := cutIPv4(r.RemoteAddr); ok {
			return append(dst, text...)
		}
	}
	a, ok := finder.client(r)
	if !ok {
		return append(dst, "unknown"...)
	}
	return p.appendAddr(dst, a)
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
