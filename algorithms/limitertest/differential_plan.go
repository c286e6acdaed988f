// Plans of random traces, which learn from the answers: returns name earlier takes, and the clock follows RetryAfter.

package limitertest

import (
	"time"

	"github.com/penstock-go/penstock/algorithms"
)

// A planner plans calls, and learns from the answers.
type planner struct {
	source
	limits  []algorithms.Limit
	several bool           // limits per key and call
	keys    []plannedCheck // of a history: each key has its limit, and no call is a mistake
	still   bool           // the clock stands still
	now     int64
	wait    time.Duration // RetryAfter of the last call
	taken   []plannedCheck
	peeks   []plannedCheck // the next call of a history
	huge    bool           // of a history: costs may be
	apart   bool           // of a history: a call charges no key twice
}

// learn remembers the takes of a call, and its RetryAfter.
func (p *planner) learn(call plannedCall, checks []algorithms.Check) {
	p.wait = wait(checks)
	for i, c := range checks {
		if c.Decision.Receipt.Units() == 0 || c.Op == algorithms.Return || c.Op == algorithms.Renew {
			continue
		}
		taken := call.checks[i]
		taken.op, taken.of = algorithms.Return, [2]int{call.id, i}
		p.taken = append(p.taken, taken)
	}
}

// call plans one call.
func (p *planner) call(id int) plannedCall {
	if p.keys != nil {
		return p.history(id)
	}
	p.step()
	call := plannedCall{id: id, at: p.now}
	settles := p.IntN(4) == 0
	for range 1 + p.IntN(4) {
		c := plannedCheck{key: p.IntN(3), l: pick(p.source, p.limits...)}
		c.cost = p.cost(c.l)
		switch {
		case settles && p.IntN(2) == 0 && len(p.taken) > 0:
			c = p.giveBack()
		case settles:
			c.op = pick(p.source, algorithms.Return, algorithms.Force, algorithms.Force,
				algorithms.Grant, algorithms.Grant, algorithms.Reset, algorithms.Renew)
			c.beat = p.IntN(4) == 0
			c.of[0] = -1
		default:
			c.op = pick(p.source,
				algorithms.Take, algorithms.Take, algorithms.Take, algorithms.Trial, algorithms.TrialInstead)
			c.beat = c.op != algorithms.Take
		}
		p.err(&c)
		if !p.several {
			c.l = oneLimit(call.checks, c)
		}
		call.checks = append(call.checks, c)
	}
	if !settles && p.IntN(3) == 0 {
		call.checks = append(call.checks, p.pair()...)
	}
	return call
}

// pair plans a pair of takes, mostly on keys that other takes do not use.
func (p *planner) pair() []plannedCheck {
	first, second := plannedCheck{key: 3}, plannedCheck{key: pick(p.source, 4, 4, 4, 4, 4, 4, 0)}
	first.l, second.l = pick(p.source, p.limits...), pick(p.source, p.limits...)
	first.cost, second.cost = p.cost(first.l), p.cost(second.l)
	second.op = pick(p.source, algorithms.TakeReserved, algorithms.TakeElse)
	p.err(&first)
	p.err(&second)
	return []plannedCheck{first, second}
}

// oneLimit returns the limit of an earlier check on the key in the same call, otherwise the check's own.
func oneLimit(checks []plannedCheck, c plannedCheck) algorithms.Limit {
	for _, other := range checks {
		if other.key == c.key && other.beat == c.beat && other.l.Algorithm() == c.l.Algorithm() {
			return other.l
		}
	}
	return c.l
}

// giveBack plans the return of a take, mostly of a recent one.
func (p *planner) giveBack() plannedCheck {
	i := p.IntN(len(p.taken))
	if p.IntN(2) == 0 {
		i = len(p.taken) - 1
	}
	c := p.taken[i]
	c.op = pick(p.source, algorithms.Return, algorithms.Return, algorithms.Renew)
	c.cost = pick(p.source, c.cost, c.cost, 0, 1, 1+p.Int64N(c.cost))
	// An older receipt must free no unit of concurrent requests again.
	c.forgets = c.l.Algorithm().Concurrent() && p.IntN(2) == 0
	if p.keys == nil && p.IntN(4) == 0 {
		// The limit has changed since the take.
		for _, l := range p.limits {
			if l.Algorithm() == c.l.Algorithm() {
				c.l = l
			}
		}
	}
	return c
}

// err now and then makes a mistake in a check, or something unusual.
func (p *planner) err(c *plannedCheck) {
	switch p.IntN(150) {
	case 0:
		c.cost = -1
	case 1:
		c.cost = 1<<63 - 1
	case 2:
		c.l = algorithms.Nobody()
	case 3:
		c.op = pick(p.source, algorithms.Take, algorithms.Force)
	case 4:
		c.beat = !c.beat
	case 5:
		c.cost = 1<<pick(p.source, 30, 32, 40) + p.Int64N(3) - 1
	}
}

// step moves the clock.
func (p *planner) step() {
	if p.still {
		return
	}
	d := p.pause(pick(p.source, p.limits...))
	if p.wait > 0 && p.wait != algorithms.Never && p.IntN(2) == 0 {
		d = p.wait - pick(p.source, 0, 0, µs)
	}
	if p.IntN(20) == 0 {
		d = -pick(p.source, 40*time.Millisecond, 150*time.Millisecond, time.Second)
	}
	if p.keys != nil {
		d = max(0, d)
	}
	if len(p.keys) > 1 && p.IntN(2) == 0 { // several calls at one instant, so that limits are full
		d = 0
	}
	if at := p.now + d.Microseconds(); at > 0 && at < lastInstant {
		p.now = at
	}
}
