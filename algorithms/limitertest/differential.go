// Two limiters play the same random traces, and must answer alike. One limiter computes in Go and the other in Lua,
// so an error would have to be made twice to remain unseen.

package limitertest

import (
	"errors"
	"fmt"
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
			p := &pair{TB: t, a: a.world(t, ""), b: b.world(t, "")}
			for range (envTraces(t, traces) + 1) / 2 {
				calls := p.generate(r, several)
				if calls == nil {
					continue
				}
				calls = p.shorten(calls)
				t.Errorf("a trace of %d calls is answered differently:\n%s", len(calls), p.play(calls))
				return
			}
		})
	}
}

// A pair is two limiters that must answer alike.
type pair struct {
	testing.TB
	a, b *world
}

// A plannedCall is one call of a trace, at an instant in µs.
type plannedCall struct {
	id     int
	at     int64
	checks []plannedCheck
}

type plannedCheck struct {
	key  string
	beat bool // on the candidates' policy
	op   algorithms.Op
	cost int64
	l    algorithms.Limit
	of   [2]int // Return, Renew: the call's id and the check that took; an id of -1 is the zero Receipt
}

// A player remembers the receipts of one limiter.
type player struct {
	*world
	receipts map[[2]int]algorithms.Receipt
}

func (p *pair) players() [2]*player {
	var players [2]*player
	for i, w := range []*world{p.a, p.b} {
		players[i] = &player{w.fresh(), make(map[[2]int]algorithms.Receipt)}
	}
	return players
}

// ask makes one call.
func (p *player) ask(call plannedCall) ([]algorithms.Check, error) {
	p.clock.set(call.at)
	var checks []algorithms.Check
	for _, c := range call.checks {
		check := p.on(c.key, c.l, c.cost)
		check.Op = c.op
		if c.beat {
			check.Policy = candidate
		}
		if c.op == algorithms.Return || c.op == algorithms.Renew {
			check.Decision.Receipt = p.receipts[c.of]
		}
		checks = append(checks, check)
	}
	err := p.limiter.Allow(p.Context(), checks)
	for i, c := range checks {
		of := [2]int{call.id, i}
		if c.Op == algorithms.Return || c.Op == algorithms.Renew {
			of = call.checks[i].of
		}
		if err == nil {
			p.receipts[of] = c.Decision.Receipt
		}
	}
	return checks, err
}

// generate plays a new trace. It returns the calls up to the first that is answered differently, or nil.
func (p *pair) generate(r source, several bool) []plannedCall {
	p.Helper()
	players := p.players()
	plan := &planner{source: r, now: pick[int64](r, epoch, epoch, year2000, second, lastInstant-hour), several: several}
	for range 2 + r.IntN(3) {
		plan.limits = append(plan.limits, r.limit(pick(r, every()...)))
	}
	// Live limits change, so one algorithm has two limits.
	plan.limits = append(plan.limits, r.limit(algorithmOf(plan.limits[0])))
	var calls []plannedCall
	for id := range 40 {
		call := plan.call(id)
		calls = append(calls, call)
		checks, err := players[0].ask(call)
		others, other := players[1].ask(call)
		if difference(checks, err, others, other) != "" {
			return calls
		}
		if err == nil {
			plan.learn(call, checks)
		}
	}
	return nil
}

// difference shows how two answers differ; "" if they do not.
func difference(a []algorithms.Check, errA error, b []algorithms.Check, errB error) string {
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
		x.Source, y.Source = 0, 0
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
		if diff := difference(checks, err, others, other); diff != "" {
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
	for shorter := true; shorter; {
		shorter = false
		for i := len(calls) - 1; i >= 0; i-- {
			without := append(append([]plannedCall(nil), calls[:i]...), calls[i+1:]...)
			if p.play(without) != "" {
				calls, shorter = without, true
				continue
			}
			for j := 0; j < len(calls[i].checks) && len(calls[i].checks) > 1; j++ {
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
