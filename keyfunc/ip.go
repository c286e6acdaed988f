package keyfunc

import (
	"cmp"
	"errors"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"github.com/penstock-go/penstock/internal/keyaccess"
)

const (
	defaultIPHeader = "X-Forwarded-For"
	defaultIPv6Bits = 64
	minIPv6Bits     = 16
	maxHops         = 32
)

// IPOptions name the proxies in front of the server. The zero value, like nil, names none.
type IPOptions struct {
	// Trusted are the addresses of your own proxies. Prefixes must be masked and not IPv4-mapped, and must not contain
	// all addresses together.
	Trusted []netip.Prefix

	// Header is the one forwarding header that these proxies append to, or overwrite; empty means X-Forwarded-For. If
	// they pass it on untouched, clients forge it. Forwarded (RFC 7239) has its own syntax; any other is a list of
	// addresses.
	Header string

	// Hops is the number of your proxies, 1 to 32, if their addresses are unknown; 0 means that Trusted names them.
	// The client is the entry at this place from the right, and unknown if there are fewer. Hops trusts every peer, so
	// a client that reaches the server without your proxies forges its address. Each proxy must append one entry.
	Hops int

	// TrustUnix trusts peers without an address, such as a proxy on a Unix socket. It cannot be combined with Hops.
	TrustUnix bool

	// IPv6Bits is the length of the prefix that counts as one client, 16 to 128; 0 means 64. "Offices and IPv6" in
	// RECIPES.md counts 48 beside it.
	IPv6Bits int
}

// proxied reports whether o has settings of proxies.
func (o *IPOptions) proxied() bool { return o.trusts() || o.Header != "" || o.Hops != 0 }

// trusts reports whether o says which peers are proxies.
func (o *IPOptions) trusts() bool { return len(o.Trusted) > 0 || o.TrustUnix }

// IP returns the Key ip=<address> of the client. Without proxy settings, it is that of [Request.ClientIP].
//
// With Trusted, IP walks the forwarding header from the right. The first untrusted entry is the client; if all are
// trusted, the leftmost is. Without the header, a trusted peer is the client itself. If the
// entry that one of your proxies wrote is not an address, or if the peer has none, such as an untrusted Unix socket,
// the key is ip=unknown.
//
// Zones are dropped. Addresses that are IPv4-mapped, 6to4 (2002::/16) or Teredo (2001::/32) count as the IPv4 address
// in them. Other IPv6 addresses are cut to IPv6Bits (ip=2001:db8:1:2::/64), except those of NAT64 (64:ff9b::/96).
func IP(o *IPOptions) Key {
	p, misconfigurations := newIPPolicy(cmp.Or(o, new(IPOptions)))
	return newIPKey(p, misconfigurations...)
}

// Peer returns the Key ip=<address> of the connection's peer. IPv6 addresses are cut to 64 bits.
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
	}, keyaccess.Info{Kinds: []string{keyaccess.IP}, Address: true, ByClientIP: p.shared}, misconfigurations...)
	k.def.ip, k.def.ips = p, []*ipPolicy{p}
	return k
}

// An ipPolicy is IPOptions, checked and complete.
type ipPolicy struct {
	shared    bool // takes the address that Request.ClientIP finds
	trusted   []netip.Prefix
	unix      bool // peers without an address are trusted
	hops      int
	header    string // empty without proxies
	forwarded bool   // header is Forwarded of RFC 7239
	bits      int
}

func newIPPolicy(o *IPOptions) (*ipPolicy, []error) {
	p := &ipPolicy{shared: !o.proxied(), trusted: slices.Clone(o.Trusted), unix: o.TrustUnix, hops: o.Hops, bits: cmp.Or(o.IPv6Bits, defaultIPv6Bits)}
	var misconfigurations []error
	add := func(err error) { misconfigurations = append(misconfigurations, err) }
	add(checkAllTrusted(p.trusted))
	if p.hops < 0 || p.hops > maxHops {
		add(misconfigurationf("IP: Hops is %d: want 0 to %d", p.hops, maxHops))
	}
	if p.hops != 0 && o.trusts() {
		add(misconfigurationf("IP: Hops cannot be combined with Trusted or TrustUnix; name the proxies, or count them in Hops"))
	}
	if !p.shared {
		var err error
		p.header, err = headerName("IP", cmp.Or(o.Header, defaultIPHeader))
		add(err)
		if p.hops == 0 && !o.trusts() {
			add(misconfigurationf("IP: header %q without Trusted, TrustUnix or Hops: name the proxies that may set it", p.header))
		}
	}
	p.forwarded = p.header == "Forwarded"
	if p.bits < minIPv6Bits || p.bits > 128 {
		add(misconfigurationf("IP: IPv6Bits is %d: want 0, or %d to 128", o.IPv6Bits, minIPv6Bits))
	}
	return p, misconfigurations
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
		// net/http writes nearly every peer as IPv4 with a port. The text before
		// the port is already the canonical one.
		if i := strings.LastIndexByte(r.RemoteAddr, ':'); i > 0 && r.RemoteAddr[0] != '[' {
			if peer, err := netip.ParseAddrPort(r.RemoteAddr); err == nil && peer.Addr().Is4() {
				return append(dst, r.RemoteAddr[:i]...)
			}
		}
	}
	found := finder.client(r)
	if !found.client.IsValid() {
		return append(dst, "unknown"...)
	}
	return p.appendAddr(dst, found.client)
}

// appendAddr appends the address, or the prefix that counts as one client.
func (p *ipPolicy) appendAddr(dst []byte, a netip.Addr) []byte {
	a = tunnelled(a)
	if a.Is4() || p.bits == 128 || nat64.Contains(a) {
		return a.AppendTo(dst)
	}
	return netip.PrefixFrom(a, p.bits).Masked().AppendTo(dst)
}
