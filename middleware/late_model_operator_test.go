// Steps of the model of late costs that an operator takes, and what is given back after them.

package ratelimit_test

import (
	"errors"
	"time"

	"pgregory.net/rapid"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/middleware"
	"github.com/penstock-go/penstock/middleware/console"
)

var allModes = []ratelimit.Mode{ratelimit.ModeOn, ratelimit.ModeShadow, ratelimit.ModeOff, ratelimit.ModeBanned}

func (m *lateModel) override() {
	m.edits++
	c, o := m.draw(), ratelimit.Override{Mode: rapid.SampledFrom(allModes).Draw(m.T, "mode")}
	if rapid.Bool().Draw(m.T, "clear") {
		delete(m.over, c)
		m.succeed(m.table.Clear(m.t.Context(), c.policy, c.key))
		return
	}
	if o.Mode == ratelimit.ModeOn || o.Mode == ratelimit.ModeShadow {
		o.Limit = m.drawLimit(m.limit(c))
	}
	m.over[c] = o
	m.succeed(m.table.Set(m.t.Context(), c.policy, c.key, o))
}

func (m *lateModel) ban() {
	m.edits++
	c := m.draw()
	m.over[c] = ratelimit.Override{Mode: ratelimit.ModeBanned}
	m.succeed(m.console.Ban(m.t.Context(), console.Subject{Policy: c.policy, Key: c.key}, time.Time{}))
}

func (m *lateModel) unban() {
	m.edits++
	c := m.draw()
	o, found := m.over[c]
	err := m.console.Unban(m.t.Context(), console.Subject{Policy: c.policy, Key: c.key})
	if found && o.Mode != ratelimit.ModeBanned {
		if !errors.Is(err, console.ErrNotFound) {
			m.t.Fatalf("unban of what is not banned: got %v", err)
		}
		return
	}
	delete(m.over, c)
	m.succeed(err)
}

func (m *lateModel) update() {
	m.edits++
	policy := m.draw().policy
	m.limits[policy] = m.drawLimit(m.limits[policy])
	m.succeed(m.m.Update(m.policies()...))
}

func (m *lateModel) reset() {
	c := m.draw()
	m.succeed(m.console.Reset(m.t.Context(), console.Subject{Policy: c.policy, Key: c.key}))
	for _, limit := range modelLimits { // under which it was used earlier, perhaps
		delete(m.used, at(c, limit(100)))
	}
	m.note(c, func(r *reservation) { r.reset = true })
}

// note marks the reservations in flight of a count with the operator's change.
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
	m.succeed(m.console.Grant(m.t.Context(), console.Subject{Policy: c.policy, Key: c.key}, units))
	m.cut(c, m.limit(c))
	m.used[at(c, m.limit(c))] = max(0, m.state(c, m.limit(c))-units)
	m.note(c, func(r *reservation) { r.granted = true })
}

var slidingLog = algorithms.SlidingWindowLog(1, time.Second).Algorithm()

// giveBack predicts a return under the algorithm of its take. A bucket that is unchanged since the take returns to its
// earlier state. After a reset nothing goes back, and nothing that a lower limit has cut. After a grant, or if the rate of a bucket may have changed, at most
// the reserved units go back.
func (m *lateModel) giveBack(c counted, r reservation, units int64) {
	l := r.limit
	if now := m.limit(c); now.Algorithm() == l.Algorithm() {
		l = now
	}
	used := m.used[at(c, l)]
	switch {
	case r.granted, !r.reset && l.Algorithm().Continuous() && r.edits != m.edits,
		r.reset && l.Algorithm() == slidingLog: // a log tells takes apart by their instants, and it is always noon
		whole := l // no state can use more than this
		for _, limit := range modelLimits {
			if limit(1).Algorithm() == l.Algorithm() {
				whole = limit(100)
			}
		}
		checks := []algorithms.Check{{Policy: c.policy, Key: c.key, Limit: whole}}
		m.succeed(m.limiter.Allow(m.t.Context(), checks))
		left := 100 - checks[0].Decision.Remaining
		if left > m.used[at(c, l)] || left < max(0, used-units) {
			m.t.Fatalf("%s %s: %d in use after a return of %d, want %d to %d", c.policy, c.key, left, units, max(0, used-units), used)
		}
		m.used[at(c, l)] = left
		return
	case r.reset, r.cut:
		return
	case l.Algorithm().Continuous() && m.used[at(c, l)] == r.left:
		used = r.left
	}
	m.used[at(c, l)] = max(0, used-units)
}
