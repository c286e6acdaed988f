// Package keyaccess has the types with which package keyfunc answers to other
// packages of this module. Users need none of them.
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
