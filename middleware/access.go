// What this module's packages for operators and customers may see of a Middleware, which package inside documents.
// checkAs and look stand beside Check.

package ratelimit

import (
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/keyfunc"
	"github.com/penstock-go/penstock/middleware/internal/inside"
)

func init() {
	inside.CheckAs, inside.Look = (*Middleware).checkAs, (*Middleware).look
	inside.ClientIP, inside.Guesses = (*Middleware).clientIPKey, (*Middleware).slowed
	inside.Replaceable, inside.Routes, inside.Tenants = (*Middleware).replaceable, (*Middleware).routes, (*Middleware).present
	inside.TopNear = (*Middleware).topNear
}

func (m *Middleware) clientIPKey() keyfunc.Key { return m.clientIP }

func (m *Middleware) routes(policy string) []string {
	if p := m.config.Load().policy(policy); p != nil {
		return p.findings.Routes()
	}
	return nil
}

func (m *Middleware) replaceable(policy string, l algorithms.Limit) error {
	c := m.config.Load()
	if p := c.policy(policy); p != nil {
		return p.replaceable(c.kinds, l)
	}
	return nil
}

func (m *Middleware) slowed(address string) (slowed bool, all int) {
	return m.guesses.Slowed(address), m.guesses.Count()
}

func (m *Middleware) present(policy string) (tenants int, weights int64) {
	if p := m.config.Load().policy(policy); p != nil && p.tenants != nil {
		return p.tenants.Present(time.Since(m.made))
	}
	return 0, 0
}
