// Two limiters play the same random traces, and must answer alike. One limiter computes in Go and the other in Lua,
// so an error would have to be made twice to remain unseen.

package limitertest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/penstock-go/penstock/algorithms"
)

// Differential plays random traces on two subjects, and wants the same answers except for their Source. A failure
// reports the shortest trace that fails.
func Differential(t *testing.T, a, b Subject, traces int) {
	for name, several := range map[string]bool{"one limit per key": false, "several limits per key": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newSource(t)
			const rule = "two limiters answer alike"
			p := &pair{TB: t, a: a.world(t, rule), b: b.world(t, rule), place: (*world).cell}
			p.compare((envTraces(t, traces)+1)/2, func() *planner { return r.anyCalls(several) })
		})
	}
}

// compare plays traces until one is answered differently.
func (p *pair) compare(traces int, plan func() *planner) {
	p.Helper()
	for range traces {
		if calls := p.generate(plan()); calls != nil {
			calls = p.shorten(calls)
			p.a.errorf("a trace of %d calls is answered differently:\n%s", len(calls), p.play(calls))
			return
		}
	}
}

// A pair is two limiters that must answer alike.
type pair struct {
	testing.TB
	a, b    *world
	place   placing
	several int // calls of several checks that were asked
}

// A plannedCall is one call of a trace, at an instant in µs.
type plannedCall struct {
	id     int
	at     int64
	checks []plannedCheck
}

type plannedCheck struct {
	key     int
	beat    bool // on the candidates' policy
	op      algorithms.Op
	cost    int64
	l       algorithms.Limit
	of      [2]int // Return, Renew: the call's id and the check that took; an id of -1 is the zero Receipt
	forgets bool   // Return, Renew: the caller keeps the receipt that it had before
}

// A player remembers the receipts of one limiter.
type player struct {
	*world
	place    placing
	receipts map[[2]int]algorithms.Receipt
	stale    algorithms.Decision // callers reuse checks, so a Decision may hold an earlier answer
}

func (p *pair) players() [2]*player {
	var players [2]*player
	for i, w := range []*world{p.a, p.b} {
		players[i] = &player{world: w.fresh(), place: p.place, receipts: make(map[[2]int]algorithms.Receipt)}
	}
	return players
}

// checks returns the checks of a call.
func (p *player) checks(call plannedCall) (checks []algorithms.Check) {
	for _, c := range call.checks {
		check := p.place(p.world, c.key, c.l, c.cost)
		check.Op, check.Decision = c.op, p.stale
		if c.beat {
			check.Policy = candidate
		}
		if c.op == algorithms.Return || c.op == algorithms.Renew {
			check.Decision.Receipt = p.receipts[c.of]
		}
		checks = append(checks, check)
	}
	return checks
}

// ask makes one call.
func (p *player) ask(call plannedCall) ([]algorithms.Check, error) {
	p.Helper()
	if call.at != p.clock.instant() {
		p.clock.set(call.at)
	}
	checks := p.checks(call)
	asked := slices.Clone(checks)
	if err := p.limiter.Allow(p.Context(), checks); err != nil {
		return checks, err
	}
	for i, c := range checks {
		if asked[i].Decision = c.Decision; c != asked[i] {
			p.errorf("got the check %+v after the call, want %+v", c, asked[i])
		}
		of := [2]int{call.id, i}
		if c.Op == algorithms.Return || c.Op == algorithms.Renew {
			of = call.checks[i].of
		}
		if !call.checks[i].forgets {
			p.receipts[of] = c.Decision.Receipt
		}
		p.stale = c.Decision
	}
	return checks, nil
}

// anyCalls returns a planner of calls with mistakes among them, under limits that change and a clock that may step back.
func (s source) anyCalls(several bool) *planner {
	p := &planner{source: s, now: pick[int64](s, epoch, epoch, year2000, second, lastInstant-hour), several: several}
	for range 2 + s.IntN(3) {
		p.limits = append(p.limits, s.limit(pick(s, every()...)))
	}
	// Live limits change, so one algorithm has two limits.
	p.limits = append(p.limits, s.limit(algorithmOf(p.limits[0])))
	return p
}

// generate plays a new trace. It returns the calls up to the first that is answered differently, or nil.
func (p *pair) generate(plan *planner) []plannedCall {
	p.Helper()
	players := p.players()
	var calls []plannedCall
	for id := range 40 {
		call := plan.call(id)
		if claims := p.a.s.Claims; claims != nil && plan.keys != nil && !claims(players[0].checks(call)) {
			call = plan.alone(id)
		}
		calls = append(calls, call)
		if len(call.checks) > 1 {
			p.several++
		}
		checks, err := players[0].ask(call)
		others, other := players[1].ask(call)
		if p.difference(checks, err, others, other) != "" {
			return calls
		}
		if err == nil {
			plan.learn(call, checks)
		}
		if d, ok := p.b.limiter.(*definition); ok && d.emptied && !plan.still {
			players[0].empty(checks[0])
		}
	}
	return nil
}

// difference shows how two answers differ; "" if they do not.
func (p *pair) difference(a []algorithms.Check, errA error, b []algorithms.Check, errB error) string {
	invalidA, invalidB := errors.Is(errA, algorithms.ErrInvalid), errors.Is(errB, algorithms.ErrInvalid)
	if (errA == nil) != (errB == nil) || invalidA != invalidB {
		return fmt.Sprintf("\tgot error %v\n\tand       %v\n", errA, errB)
	}
	if errA != nil {
		return ""
	}
	var diff strings.Builder
	for i := range a {
		x, y := a[i].Decision, b[i].Decision
		// A receipt of another backend is Undecided in both limiters, every other decision in neither.
		undecided := (x.Source == algorithms.Undecided) != (y.Source == algorithms.Undecided)
		if p.a.s.Source != p.b.s.Source {
			x.Source, y.Source = 0, 0
		}
		if p.a.s.RealClock { // time passes between calls, so only whether there is a wait is compared
			for _, d := range []*algorithms.Decision{&x, &y} {
				d.RetryAfter, d.ResetAfter, d.UnitAfter, d.Delay = min(d.RetryAfter, µs), min(d.ResetAfter, µs), min(d.UnitAfter, µs), min(d.Delay, µs)
			}
		}
		if show(x) != show(y) || undecided {
			fmt.Fprintf(&diff, "\tcheck %d: got %s\n\t         and %s\n", i, show(a[i].Decision), show(b[i].Decision))
		}
	}
	return diff.String()
}

// play plays calls on fresh keys, and shows them up to the first that is answered differently. It returns "" if all
// answers are the same.
func (p *pair) play(calls []plannedCall) string {
	p.Helper()
	players := p.players()
	var shown strings.Builder
	for _, call := range calls {
		checks, err := players[0].ask(call)
		others, other := players[1].ask(call)
		fmt.Fprintf(&shown, "at %d (%+d): %s\n", call.at, call.at-epoch, text(checks))
		if diff := p.difference(checks, err, others, other); diff != "" {
			return shown.String() + diff
		}
		for _, c := range checks {
			fmt.Fprintf(&shown, "\t%s\n", show(c.Decision))
		}
	}
	return ""
}

// shorten leaves out calls and checks as long as the rest is still answered differently.
func (p *pair) shorten(calls []plannedCall) []plannedCall {
	_, whole := p.b.limiter.(*definition) // definitions know no mistakes, such as one half of a pair
	for shorter := true; shorter; {
		shorter = false
		for i := len(calls) - 1; i >= 0; i-- {
			without := append(append([]plannedCall(nil), calls[:i]...), calls[i+1:]...)
			if p.play(without) != "" {
				calls, shorter = without, true
				continue
			}
			for j := 0; !whole && j < len(calls[i].checks) && len(calls[i].checks) > 1; j++ {
				less := calls[i]
				less.checks = append(append([]plannedCheck(nil), less.checks[:j]...), less.checks[j+1:]...)
				without := append([]plannedCall(nil), calls...)
				without[i] = less
				if p.play(without) != "" {
					calls, shorter = without, true
				}
			}
		}
	}
	return calls
}
