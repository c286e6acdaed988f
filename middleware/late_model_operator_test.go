// Steps of the model of late costs that an operator takes: overrides, bans, changed limits, resets and grants.

package middleware_test

import (
	"errors"
	"time"

	"pgregory.net/rapid"

	"github.com/penstock-go/penstock/algorithms/overrides"
	ratelimit "github.com/penstock-go/penstock/middleware"
)

func (m *lateModel) override() {
	c, o := m.draw(), overrides.Override{Mode: overrides.Mode(rapid.IntRange(0, 3).Draw(m.T, "mode"))}
	if rapid.Bool().Draw(m.T, "clear") {
		delete(m.over, c)
		m.succeed(m.table.Clear(m.t.Context(), c.policy, c.key))
		return
	}
	if o.Mode <= overrides.Shadow {
		o.Limit = m.drawLimit(m.limit(c))
	}
	m.over[c] = o
	m.succeed(m.table.Set(m.t.Context(), c.policy, c.key, o))
}

func (m *lateModel) ban() {
	c := m.draw()
	m.over[c] = overrides.Override{Mode: overrides.Banned}
	m.succeed(m.console.Ban(m.t.Context(), ratelimit.Subject{Policy: c.policy, Key: c.key}, time.Time{}))
}

func (m *lateModel) unban() {
	c := m.draw()
	o, found := m.over[c]
	err := m.console.Unban(m.t.Context(), ratelimit.Subject{Policy: c.policy, Key: c.key})
	if found && o.Mode != overrides.Banned {
		if !errors.Is(err, ratelimit.ErrNotFound) {
			m.t.Fatalf("unban of what is not banned: got %v", err)
		}
		return
	}
	delete(m.over, c)
	m.succeed(err)
}

func (m *lateModel) update() {
	policy := m.draw().policy
	m.limits[policy] = m.drawLimit(m.limits[policy])
	m.succeed(m.m.Update(m.policies()...))
}

func (m *lateModel) reset() {
	c := m.draw()
	m.succeed(m.console.Reset(m.t.Context(), ratelimit.Subject{Policy: c.policy, Key: c.key}))
	for _, limit := range modelLimits { // under which it was used earlier, perhaps
		delete(m.used, at(c, limit(100)))
	}
	m.note(c, func(r *reservation) { r.reset = true })
}

// note tells the reservations in flight of a count what the operator has done.
func (m *lateModel) note(c counted, tell func(*reservation)) {
	for _, f := range m.inFlight {
		if r, ok := f.reserved[c.policy]; ok && f.key == c.key {
			tell(&r)
			f.reserved[c.policy] = r
		}
	}
}

func (m *lateModel) grant() {
	c, units := m.draw(), rapid.Int64Range(1, 5).Draw(m.T, "units")
	m.succeed(m.console.Grant(m.t.Context(), ratelimit.Subject{Policy: c.policy, Key: c.key}, units))
	m.used[at(c, m.limit(c))] = max(0, m.state(c, m.limit(c))-units)
	m.note(c, func(r *reservation) { r.granted = true })
}
