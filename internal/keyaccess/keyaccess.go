// Package keyaccess gives other packages of this module three parts of package
// keyfunc that users do not need. Package keyfunc sets these functions, so a
// caller must import it. A function panics on an argument of another type.
package keyaccess

var (
	// Forms returns the possible sequences of parts of a keyfunc.Key: the kind of
	// each, or the whole part of a Const. The caller owns the slices.
	Forms func(key any) [][]string

	// NoLookup makes every well-formed API key of a *keyfunc.Request unknown,
	// without a lookup; false ends that.
	NoLookup func(request any, on bool)

	// Identify tells a *keyfunc.Request its identity, unless the id is empty: keys of
	// User and APIKey then yield it, and call no function of the service.
	Identify func(request any, id, tier string)
)
