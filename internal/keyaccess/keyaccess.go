// Package keyaccess gives other packages of this module five parts of package
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

	// Escape returns a value as keys write it.
	Escape func(value string) string

	// SetGuard puts a Guard before the lookups of a *keyfunc.Request.
	SetGuard func(request any, g Guard)

	// Identify tells a *keyfunc.Request its identity, unless the id is empty: keys of
	// User and APIKey then yield it, and call no function of the service.
	Identify func(request any, id, tier string)
)
