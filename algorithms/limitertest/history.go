// Random histories of calls on a few keys, against the definitions of their algorithms, under a clock that does not step
// back and limits that do not change.

package limitertest

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/penstock-go/penstock/algorithms"
)

// runDefinitions plays histories of single checks on one key.
func runDefinitions(t *testing.T, s Subject) {
	s.runHistories(t, "verdicts, figures and receipts are those of the definition, in rational numbers", 1, (*world).cell, false)
}

// runHistories plays histories on so many keys, which have these places. If apart, a call charges no key twice.
func (s Subject) runHistories(t *testing.T, rule string, keys int, place placing, apart bool) {
	for _, a := range every() {
		t.Run(a.name(), func(t *testing.T) {
			t.Parallel()
			w, r, histories := s.world(t, rule), newSource(t), 12
			if !s.RealClock {
				histories = max(histories, s.traces(t)/8)
			}
			defined := *w
			defined.limiter = &definition{world: w, keys: make(map[[3]string]*ideal)}
			p := &pair{TB: t, a: w, b: &defined, place: place}
			p.compare(histories, func() *planner {
				plan := r.historyOf(a, keys, s.RealClock)
				plan.apart = apart
				return plan
			})
			if keys > 1 && p.several == 0 && !t.Failed() {
				t.Skip("not claimed: calls of several checks")
			}
		})
	}
}

// Keys of a history on several keys: two for any takes, two pairs, and two for trials.
const (
	anyTakes    = 2
	takeKeys    = 6
	historyKeys = 8
)

// historyOf returns a planner of a history on keys of one algorithm, or of several.
func (s source) historyOf(a algorithm, keys int, realClock bool) *planner {
	p := &planner{source: s, now: epoch, still: realClock}
	if !realClock {
		p.now = pick(s, epoch, 1+s.Int64N(1<<52))
	}
	mixed := s.IntN(2) == 0
	for i := range keys {
		of := a
		if mixed && i > 0 {
			of = pick(s, pick(s, every(), reserving())...)
		}
		// A trial's key differs from a take's by its policy, or by its algorithm.
		k := plannedCheck{key: i % takeKeys}
		switch {
		case i > 0 && s.IntN(8) == 0:
			k.l = algorithms.Nobody()
		case realClock:
			k.l = of.of(10, 365*24*time.Hour)
		default:
			k.l = pick(s, s.limit(of), of.of(20, time.Minute), of.of(5, time.Hour))
		}
		if k.l != algorithms.Nobody() {
			p.limits = append(p.limits, k.l)
		}
		k.beat = i >= takeKeys && (s.IntN(2) == 0 || k.l.Algorithm() == p.keys[i%takeKeys].l.Algorithm())
		p.keys = append(p.keys, k)
	}
	return p
}

// history plans one call of a history. After a call of several checks, the next one asks for the figures of its keys.
func (p *planner) history(id int) plannedCall {
	if peeks := p.peeks; peeks != nil {
		p.peeks = nil
		return plannedCall{id, p.now, peeks}
	}
	p.step()
	p.huge = p.IntN(6) == 0
	call, checks := plannedCall{id: id, at: p.now}, 1
	if len(p.keys) > 1 {
		checks += p.IntN(4)
	}
	takes, pairs := p.IntN(min(4, 1+len(p.keys))) > 0, p.IntN(2) == 0
	for range checks {
		switch {
		case !takes:
			// Under the real clock the model does not know which entries a second Return of one take finds.
			c := p.settlement()
			if !p.still || c.of[0] < 0 || !slices.ContainsFunc(call.checks, func(other plannedCheck) bool { return other.of == c.of }) {
				call.checks = append(call.checks, c)
			}
		case len(p.keys) == 1:
			return p.alone(id)
		default:
			next := p.takes(call.checks, pairs)
			if !p.apart || !slices.ContainsFunc(call.checks, func(c plannedCheck) bool { return c.key == next[0].key && c.beat == next[0].beat }) {
				call.checks = append(call.checks, next...)
			}
		}
	}
	if len(call.checks) > 1 {
		for _, c := range call.checks {
			if peek := (plannedCheck{key: c.key, beat: c.beat, l: c.l}); !slices.Contains(p.peeks, peek) {
				p.peeks = append(p.peeks, peek)
			}
		}
	}
	return call
}

// alone plans a take of the first key.
func (p *planner) alone(id int) plannedCall {
	p.peeks = nil
	return plannedCall{id, p.now, []plannedCheck{p.op(algorithms.Take, p.keys[0])}}
}

// takes plans a take, a pair or a trial, as the next of a call.
func (p *planner) takes(call []plannedCheck, pairs bool) []plannedCheck {
	anyBefore := slices.ContainsFunc(call, func(c plannedCheck) bool { return c.op <= algorithms.TakeElse })
	trial, either := pick(p.source, p.keys[takeKeys:]...), pick(p.source, p.keys[:anyTakes]...)
	switch n := p.IntN(8); {
	case n == 0:
		return []plannedCheck{p.op(algorithms.Trial, trial)}
	case n <= 2 && anyBefore:
		return []plannedCheck{p.op(algorithms.TrialInstead, trial)}
	case !pairs:
		return []plannedCheck{p.op(algorithms.Take, pick(p.source, p.keys[:takeKeys]...))}
	case n <= 5:
		return []plannedCheck{p.op(algorithms.Take, either)}
	}
	pair := p.keys[anyTakes+2*p.IntN(2):][:2]
	if slices.ContainsFunc(call, func(c plannedCheck) bool { return !c.beat && c.key == pair[0].key }) {
		return []plannedCheck{p.op(algorithms.Take, either)}
	}
	op := algorithms.TakeElse
	if l := pair[1].l; p.IntN(2) == 0 && (l == algorithms.Nobody() || algorithmOf(l).reserves()) {
		op = algorithms.TakeReserved
	}
	return []plannedCheck{p.op(algorithms.Take, pair[0]), p.op(op, pair[1])}
}

// settlement plans a settlement that definitions can judge.
func (p *planner) settlement() plannedCheck {
	c := pick(p.source, p.keys...)
	switch {
	case p.IntN(8) == 0:
		return p.op(algorithms.Force, c)
	case len(p.taken) > 0 && p.IntN(3) > 0:
		if c = p.giveBack(); algorithmOf(c.l).delays { // a queue credits its newest place only
			c.op = algorithms.Renew
		}
		return c
	}
	op := pick(p.source, algorithms.Grant, algorithms.Reset, algorithms.Return, algorithms.Renew)
	// A Grant may free held units that have ended. Under the real clock the model does not know the order of entries.
	if p.still || op == algorithms.Grant && c.l.Algorithm().Concurrent() {
		op = algorithms.Renew
	}
	return p.op(op, c)
}

// op plans an op of a random cost on a key. It has no receipt.
func (p *planner) op(op algorithms.Op, c plannedCheck) plannedCheck {
	c.op, c.of[0] = op, -1
	switch {
	case op == algorithms.Force && p.IntN(8) == 0, op == algorithms.Grant && p.IntN(2) == 0:
		c.cost = math.MaxInt64 // a debt has a floor, and nothing is above full
	case p.huge && p.IntN(2) == 0: // the bounds of arithmetic: 2^40 is the largest that a script sees, 2^53 the end of exact doubles
		c.cost = pick[int64](p.source, 1<<30, 1<<32+1, 1<<40-1, 1<<40, 1<<40+1, 1<<53, 1<<62, 1<<63-1)
	case c.l == algorithms.Nobody(), len(p.keys) > 1 && p.IntN(2) == 0: // often several takes fit
		c.cost = p.Int64N(4)
	default:
		c.cost = pick(p.source, p.cost(c.l), p.Int64N(8))
	}
	return c
}
