// Package access gives packages for operators the parts of a ratelimit.Middleware
// that users do not need. Package ratelimit sets these functions, so a caller must
// import it. A function panics on an argument of another type.
package access

import "github.com/penstock-go/penstock/algorithms"

var (
	// ClientIP returns the keyfunc.Key that finds the addresses of clients.
	ClientIP func(middleware any) (key any)

	// Routes returns the routes that keys of a policy have had, as their parts rt=...
	// It may lack a route that few requests had.
	Routes func(middleware any, policy string) []string

	// Guesses reports whether a Middleware looks up the new API keys of an address
	// slowly, because the address sent unknown ones, and of how many addresses it does.
	Guesses func(middleware any, address string) (slowed bool, all int)

	// Replaceable returns why requests would ignore a limit of an override, nil if they
	// would not. The policy exists.
	Replaceable func(middleware any, policy string, l algorithms.Limit) error
)
