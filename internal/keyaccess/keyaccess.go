// Package keyaccess gives other packages of this module the parts of package
// keyfunc that users do not need. Package keyfunc sets these functions, so a
// caller must import it. A function panics on an argument of another type.
package keyaccess

import "net/netip"

// A Guard stands before the lookups of API keys. lookup is comparable and identifies
// the lookup function.
type Guard interface {
	// Admit reports whether to look a key up. If not, the key is unknown.
	Admit(lookup any, key string) bool

	// Done receives the result of each admitted lookup: nil, an error that wraps
	// keyfunc.ErrUnknown, or another one.
	Done(err error)
}

var (
	// Forms returns the possible sequences of parts of a keyfunc.Key: the kind of
	// each, or the whole part of a Const. The caller owns the slices.
	Forms func(key any) [][]string

	// Addresses returns the parts that a keyfunc.Key makes of a client's address, such
	// as ip=2001:db8::/64: one for each prefix length that its parts cut to.
	Addresses func(key any, address netip.Addr) []string

	// SetGuard puts a Guard before the lookups of a *keyfunc.Request.
	SetGuard func(request any, g Guard)

	// Identify tells a *keyfunc.Request its identity, unless the id is empty: keys of
	// User and APIKey then yield it, and call no function of the service.
	Identify func(request any, id, tier string)

	// OriginOf returns where a valid keyfunc.Key finds the client's address in a
	// *keyfunc.Request: by the first part of the key that names proxies, otherwise by
	// the request's ClientIP, if the key needs it. The origin is NoProxies if none of
	// them names any.
	OriginOf func(key, request any) Address
)

// An Address is a client's address, and where it was found.
type Address struct {
	Origin Origin
	Client netip.Addr // invalid if unknown
	Left   string     // the entry left of the client's; "" if there is none
}

// An Origin says where a client's address was found.
type Origin uint8

const (
	NoProxies   Origin = iota // no proxies are named: it is the peer's
	Forwarded                 // a proxy wrote it into the header
	Direct                    // the peer is no proxy, and no proxy has forwarded the request
	NoHeader                  // the peer is a proxy, and has set no forwarding header: most likely a health check
	OtherHeader               // the peer is a proxy, and has set another forwarding header
	Untrusted                 // the peer is no proxy, and a proxy has forwarded the request
	NoAddress                 // the same, and the peer has no address
	FewHops                   // the header has fewer entries than there are proxies
	Unreadable                // a proxy's own entry is no address
)
