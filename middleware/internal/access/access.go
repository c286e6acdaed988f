// Package access gives packages for operators the parts of a ratelimit.Middleware
// that users do not need. Package ratelimit sets these functions, so a caller must
// import it. A function panics on an argument of another type.
package access

import (
	"net/http"

	"github.com/penstock-go/penstock/algorithms"
)

var (
	// ClientIP returns the keyfunc.Key that finds the addresses of clients.
	ClientIP func(middleware any) (key any)

	// Look returns the ratelimit.Verdict on a request for the quotas of its client, and writes their header fields. It
	// charges nothing.
	Look func(middleware any, h http.Header, r *http.Request) (verdict any)

	// CheckAs is Middleware.Check of a request whose client is an account, unless id is empty.
	CheckAs func(middleware any, r *http.Request, id, tier string) (verdict any, err error)

	// Routes returns the routes that keys of a policy have had, as their parts rt=...
	// It may lack a route that few requests had.
	Routes func(middleware any, policy string) []string

	// Guesses reports whether a Middleware looks up the new API keys of an address
	// slowly, because the address sent unknown ones, and of how many addresses it does.
	Guesses func(middleware any, address string) (slowed bool, all int)

	// Tenants returns how many tenants of a policy are present in this process, and the
	// sum of their weights; 0 without shares.
	Tenants func(middleware any, policy string) (tenants int, weights int64)

	// Replaceable returns why requests would ignore a limit of an override, nil if they
	// would not. The policy exists.
	Replaceable func(middleware any, policy string, l algorithms.Limit) error
)
