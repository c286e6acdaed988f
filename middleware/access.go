// What this module's packages for operators and customers may see of a Middleware.
// CheckAs and Look stand beside Check.

package ratelimit

import (
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/keyfunc"
)

// ClientIP is for this module's packages. It returns the Key that finds the addresses of clients.
func (m *Middleware) ClientIP() keyfunc.Key { return m.clientIP }

// Routes is for this module's packages. It returns the routes that keys of a policy have had, as their parts rt=...; it
// may lack a route that few requests had.
func (m *Middleware) Routes(policy string) []string {
	if p := m.config.Load().policy(policy); p != nil {
		return p.findings.Routes()
	}
	return nil
}

// Replaceable is for this module's packages. It returns why requests would ignore a limit of an override, nil if they
// would not, or if there is no such policy.
func (m *Middleware) Replaceable(policy string, l algorithms.Limit) error {
	c := m.config.Load()
	if p := c.policy(policy); p != nil {
		return p.replaceable(c.kinds, l)
	}
	return nil
}

// Guesses is for this module's packages. It reports whether m looks up the new API keys of an address slowly, because the
// address sent unknown ones, and of how many addresses it does.
func (m *Middleware) Guesses(address string) (slowed bool, all int) {
	return m.guesses.Slowed(address), m.guesses.Count()
}

// Tenants is for this module's packages. It returns how many tenants of a policy are present in this process, and the sum
// of their weights; 0 without shares.
func (m *Middleware) Tenants(policy string) (tenants int, weights int64) {
	if p := m.config.Load().policy(policy); p != nil && p.tenants != nil {
		return p.tenants.Present(time.Since(m.made))
	}
	return 0, 0
}
