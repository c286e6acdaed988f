// Package inside holds the functions of package ratelimit that only other packages of this module call. So its users do
// not meet them among the methods of a Middleware.
//
// The types of ratelimit are unknown here, because ratelimit imports this package and sets the functions when the program
// starts. Each caller asserts the type in a variable of its package, so a wrong type ends every program and test of that
// package at once.
package inside

import "time"

// A NearKey is a key of admitted requests that left less than a fifth of its limit.
type NearKey struct {
	// Key shows the key to operators. Plain is the key itself, and may name a person.
	Key, Plain string

	// Admitted counts these requests. It is at most Error too high, 0 while few keys are near.
	Admitted, Error uint64

	// Last is the last of these requests.
	Last time.Time
}

var (
	// CheckAs is Check of a request whose client is an account, unless id is empty:
	// func(m *ratelimit.Middleware, r *http.Request, id, tier string) (ratelimit.Verdict, error).
	CheckAs any

	// ClientIP returns the Key that finds the addresses of clients: func(*ratelimit.Middleware) keyfunc.Key.
	ClientIP any

	// Guesses reports whether the Middleware looks up the new API keys of an address slowly, because the address sent
	// unknown ones, and of how many addresses it does: func(m *ratelimit.Middleware, address string) (slowed bool, all int).
	Guesses any

	// Look returns the quotas of a request's client, and charges nothing: of the policies that headers describe and whose
	// keys have no route. It writes their fields, unless the verdict refuses the client whatever its quotas are:
	// func(*ratelimit.Middleware, http.Header, *http.Request) ratelimit.Verdict.
	Look any

	// Replaceable returns why requests would ignore a limit of an override, nil if they would not, or if there is no such
	// policy: func(m *ratelimit.Middleware, policy string, l algorithms.Limit) error.
	Replaceable any

	// Routes returns the routes that keys of a policy have had, as their parts rt=...; it may lack a route that few
	// requests had: func(m *ratelimit.Middleware, policy string) []string.
	Routes any

	// Tenants returns how many tenants of a policy are present in this process, and the sum of their weights; 0 without
	// shares: func(m *ratelimit.Middleware, policy string) (tenants int, weights int64).
	Tenants any

	// TopNear returns up to n keys of a policy whose admitted requests left less than a fifth of the limit most often
	// within the last ten to twenty minutes, the most frequent first, or nil. They are the clients that a lower limit
	// would deny: func(m *ratelimit.Middleware, policy string, n int) []NearKey.
	TopNear any
)
