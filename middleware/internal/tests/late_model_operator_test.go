// Steps of the model of late costs that an operator takes, and what is given back after them.

package tests

import (
	"errors"
	"time"

	"pgregory.net/rapid"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/middleware"
	"github.com/penstock-go/penstock/middleware/console"
)

var allModes = []ratelimit.Mode{"", ratelimit.ModeShadow, ratelimit.ModeOff, ratelimit.ModeBanned}

func (m *lateModel) override() {
	c, o := m.draw(), ratelimit.Override{Mode: rapid.SampledFrom(allModes).Draw(m.T, "mode")}
	if rapid.Bool().Draw(m.T, "clear") {
		delete(m.over, c)
		m.succeed(m.table.Clear(m.t.Context(), c.policy, c.key))
		return
	}
	if o.Mode == "" || o.Mode == ratelimit.ModeShadow {
		o.Limit = m.drawLimit(m.limit(c))
	}
	m.over[c] = o
	m.succeed(m.table.Set(m.t.Context(), c.policy, c.key, o))
}

func (m *lateModel) ban() {
	c := m.draw()
	m.over[c] = ratelimit.Override{Mode: ratelimit.ModeBanned}
	m.succeed(m.console.Ban(m.t.Context(), console.Subject{Policy: c.policy, Key: c.key}, time.Time{}, ""))
}

func (m *lateModel) unban() {
	c := m.draw()
	o, found := m.over[c]
	_, err := m.console.Unban(m.t.Context(), console.Subject{Policy: c.policy, Key: c.key})
	if !found || o.Mode != ratelimit.ModeBanned {
		if !errors.Is(err, console.ErrNotFound) {
			m.t.Fatalf("unban of a key that is not banned: got %v, want ErrNotFound", err)
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

// relieve wants a change without an error, except that a ban still holds.
func (m *lateModel) relieve(_ int64, err error) {
	if !errors.Is(err, console.ErrBanned) {
		m.succeed(err)
	}
}

func (m *lateModel) reset() {
	c := m.draw()
	m.relieve(m.console.Reset(m.t.Context(), console.Subject{Policy: c.policy, Key: c.key}))
	for _, limit := range modelLimits { // under which it was used earlier, perhaps
		delete(m.used, at(c, limit(100)))
	}
}

func (m *lateModel) grant() {
	c, units := m.draw(), rapid.Int64Range(1, 5).Draw(m.T, "units")
	m.relieve(m.console.Grant(m.t.Context(), console.Subject{Policy: c.policy, Key: c.key}, units))
	for _, limit := range modelLimits { // a grant needs no limit, so it credits every state
		m.used[at(c, limit(100))] = max(0, m.used[at(c, limit(100))]-units)
	}
}

var slidingLog = algorithms.SlidingWindowLog(1, time.Second).Algorithm()

// giveBack predicts a return under the algorithm of its take. It is always noon, so all units in use are in the window
// or at the instant of the take.
func (m *lateModel) giveBack(c counted, r reservation, units int64) {
	l := r.limit
	if now := m.limit(c); now.Algorithm() == l.Algorithm() {
		l = now
	}
	m.used[at(c, l)] = max(0, m.state(c, l)-units)
}
