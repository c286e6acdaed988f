// What servers settle after a decision, in virtual time.

package replay

import (
	"context"
	"time"

	"github.com/penstock-go/penstock/algorithms"
)

// A settlement is due at an instant. A hold is renewed until its end, and returned then.
type settlement struct {
	end   int64 // µs; 0 for all others
	check algorithms.Check
}

// settleUntil makes the settlements that are due at an instant.
func (e *engine) settleUntil(instant int64) {
	for e.pending.due(instant) {
		next := e.pending.pop()
		s := next.what.(*settlement)
		e.now = max(e.now, next.at)
		if next.at < s.end {
			s.check.Op = algorithms.Renew
			e.hold(s.check, next.at, s.end)
		} else if s.end > 0 {
			s.check.Op = algorithms.Return
		}
		e.make(s.check)
	}
}

func (e *engine) make(c algorithms.Check) {
	checks := [1]algorithms.Check{c}
	_ = e.limiter.memory.Allow(context.Background(), checks[:]) // the check was valid before
}

func (e *engine) plan(at, end int64, c algorithms.Check) {
	e.pending.push(at, &settlement{end, c})
}

// settle plans the settlements of an admitted request.
func (e *engine) settle(l *entry) {
	end := l.Time + l.Duration.Microseconds()
	for i := range e.asked {
		a := &e.asked[i]
		switch {
		case a.check.Decision.Receipt.Units() == 0:
		case a.check.Limit.Algorithm().Concurrent():
			e.hold(a.check, l.Time, end)
		case l.Settled != nil:
			for _, s := range l.Settled {
				if s.Policy == a.check.Policy {
					e.settleUnits(a.check, s.Units, s.At.UnixMicro())
				}
			}
		default:
			e.settleUnits(a.check, l.settled(a.policy, a.check.Cost), end)
		}
	}
}

// renewals is how often a middleware renews a hold before it would end.
const renewals = 3

func (e *engine) hold(c algorithms.Check, from, end int64) {
	next := from + max(c.Limit.Window()/renewals, time.Second/renewals).Microseconds()
	e.plan(min(next, end), end, c)
}

// settleUnits charges units at an instant, or returns them if they are negative.
func (e *engine) settleUnits(c algorithms.Check, units, at int64) {
	if c.Op, c.Cost = algorithms.Force, units; units < 0 {
		c.Op, c.Cost = algorithms.Return, -units
	}
	switch {
	case units == 0:
	case at <= e.now:
		e.make(c)
	default:
		e.plan(at, 0, c)
	}
}
