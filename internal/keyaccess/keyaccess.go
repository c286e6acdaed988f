// Package keyaccess gives other packages of this module five parts of package
// keyfunc that users do not need. Package keyfunc sets these functions, so a
// caller must import it. A function panics on an argument of another type.
package keyaccess

import "net/netip"

var (
	// Forms returns the possible sequences of parts of a keyfunc.Key: the kind of
	// each, or the whole part of a Const. The caller owns the slices.
	Forms func(key any) [][]string

	// Addresses returns the parts that a keyfunc.Key makes of a client's address, such
	// as ip=2001:db8::/64: one for each prefix length that its parts cut to.
	Addresses func(key any, address netip.Addr) []string

	// Escape returns a value as keys write it.
	Escape func(value string) string

	// NoLookup makes every well-formed API key of a *keyfunc.Request unknown,
	// without a lookup; false ends that.
	NoLookup func(request any, on bool)

	// Identify tells a *keyfunc.Request its identity, unless the id is empty: keys of
	// User and APIKey then yield it, and call no function of the service.
	Identify func(request any, id, tier string)
)
