// What this module's packages for operators and customers may see of a Middleware.

package ratelimit

import (
	"net/http"
	"slices"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/keyfunc"
)

// Inside is for this module's packages.
func (m *Middleware) Inside() inside { return inside{m} }

// An inside is a Middleware as this module's packages see it.
type inside struct{ m *Middleware }

// CheckAs is Check of a request whose client is an account, unless id is empty.
func (i inside) CheckAs(r *http.Request, id, tier string) (Verdict, error) {
	q := newRequest(i.m, r, false)
	if id != "" {
		q.http.Identify(id, tier)
	}
	defer q.decide().free()
	if q.verdict.Allowed {
		return q.verdict.clone(), nil // also without a decision
	}
	return q.verdict.clone(), q.refusal.err
}

// Look returns the quotas of a request's client, and charges nothing: of the policies that headers describe and whose
// keys have no route. It writes their fields, unless the verdict refuses the client whatever its quotas are.
func (i inside) Look(h http.Header, r *http.Request) Verdict {
	q := newRequest(i.m, r, true)
	q.looks = true
	defer q.decide().free()
	v := q.verdict
	if v.denied() && !slices.ContainsFunc(v.Policies, func(p PolicyVerdict) bool { return p.Banned || p.Guessed }) {
		v.Allowed, v.Status = true, 0 // a quota is used up
	}
	if v.Allowed {
		i.m.describeLimits(h, v, &q.scratch)
	}
	return v.clone()
}

// ClientIP returns the Key that finds the addresses of clients.
func (i inside) ClientIP() keyfunc.Key { return i.m.clientIP }

// Routes returns the routes that keys of a policy have had, as their parts rt=...; it may lack a route that few requests
// had.
func (i inside) Routes(policy string) []string {
	if p := i.m.config.Load().policy(policy); p != nil {
		return p.findings.Routes()
	}
	return nil
}

// Replaceable returns why requests would ignore a limit of an override, nil if they would not, or if there is no such
// policy.
func (i inside) Replaceable(policy string, l algorithms.Limit) error {
	c := i.m.config.Load()
	if p := c.policy(policy); p != nil {
		return p.replaceable(c.kinds, l)
	}
	return nil
}

// Guesses reports whether the Middleware looks up the new API keys of an address slowly, because the address sent unknown
// ones, and of how many addresses it does.
func (i inside) Guesses(address string) (slowed bool, all int) {
	return i.m.guesses.Slowed(address), i.m.guesses.Count()
}

// Tenants returns how many tenants of a policy are present in this process, and the sum of their weights; 0 without
// shares.
func (i inside) Tenants(policy string) (tenants int, weights int64) {
	if p := i.m.config.Load().policy(policy); p != nil && p.tenants != nil {
		return p.tenants.Present(time.Since(i.m.made))
	}
	return 0, 0
}
