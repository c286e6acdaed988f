// Package keyaccess has the types with which package keyfunc answers to other
// packages of this module. Users need none of them. The methods of keyfunc that are for this module:
//
//	Key.Addresses     returns the parts that a Key makes of a client's address, such as ip=2001:db8::/64: one for each
//	                  prefix length to which its parts cut
//	Key.OriginOf      returns where a valid Key finds the client's address in a Request: by the first part of the key that
//	                  names proxies, otherwise by ClientIP, if the key needs it. The origin is NoProxies if none names any
//	Request.SetGuard  puts a Guard before the lookups
//	Request.Identify  sets the identity: keys of User and APIKey then yield it, unless the id is empty, and call no
//	                  function of the service
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

// Info describes a Key. All callers share the slices.
type Info struct {
	// Kinds are the kinds of all possible parts: "usr", "ip", "rt", "const",
	// "hdr.x-tenant" for Header("X-Tenant"), and the kinds of Custom.
	Kinds []string

	// Forms are the possible sequences of parts: the kind of each, or the whole part of a Const.
	Forms [][]string

	// Folded are those of Kinds whose values are in lower case, without spaces around them: the kinds of JSONField and
	// FormField.
	Folded []string

	// Challenges are the WWW-Authenticate values of a 401 (RFC 9110, section
	// 11.6.1), one per API key, e.g. "Bearer".
	Challenges []string

	// Identity reports whether the Key may yield one.
	Identity bool

	// Address reports whether the Key is itself an IP or Peer.
	Address bool

	// ByClientIP reports whether the Key has an IP without proxy settings.
	ByClientIP bool

	// Unknown reports whether the Key may fail with ErrUnknown.
	Unknown bool
}
