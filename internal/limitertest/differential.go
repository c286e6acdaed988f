package limitertest

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/penstock-go/penstock/algorithms"
)

// Differential plays random traces on limiters of two subjects, and wants the same answers but for their Source:
// several checks per call over three keys, all ops, awkward limits that change, and a clock that is set now and then.
// In one half of the traces a call may also ask for one key under several limits. The environment variable
// PENSTOCK_TRACES sets the number of traces. A failure reports the seed and
// the shortest trace that it could find.
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

// A pair is two limiters that are to answer alike.
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
	plan := &planner{source: r, now: epoch, several: several}
	for range 2 + r.IntN(3) {
		plan.limits = append(plan.limits, r.limit(pick(r, everyConstructor...)))
	}
	// Live limits change: there is another of an algorithm that is there already.
	plan.limits = append(plan.limits, r.limit(constructorOf(plan.limits[0])))
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
	if (errA == nil) != (errB == nil) || errors.Is(errA, algorithms.ErrInvalid) != errors.Is(errB, algorithms.ErrInvalid) {
		return fmt.Sprintf("\tgot error %v\n\tand       %v\n", errA, errB)
	}
	if errA != nil {
		return ""
	}
	var diff strings.Builder
	for i := range a {
		x, y := a[i].Decision, b[i].Decision
		// A receipt of another backend is Undecided in both, a decision in none.
		undecided := (x.Source == algorithms.Undecided) != (y.Source == algorithms.Undecided)
		x.Source, y.Source = 0, 0
		if show(x) != show(y) || undecided {
			fmt.Fprintf(&diff, "\tcheck %d: got %s\n\t         and %s\n", i, show(a[i].Decision), show(b[i].Decision))
		}
	}
	return diff.String()
}

// play plays calls from the start on fresh keys, and shows them up to the first that is answered differently. It
// returns "" if none is.
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

// A planner plans calls, and learns from the answers.
type planner struct {
	source
	limits  []algorithms.Limit
	several bool // limits per key and call
	now     int64
	wait    time.Duration // RetryAfter of the last call
	taken   []plannedCheck
}

// learn remembers what a call took, and how long it is to wait.
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
	p.step()
	call := plannedCall{id: id, at: p.now}
	settles := p.IntN(4) == 0
	for range 1 + p.IntN(4) {
		c := plannedCheck{key: string(rune('a' + p.IntN(3))), l: pick(p.source, p.limits...)}
		c.cost = p.cost(c.l)
		switch {
		case settles && p.IntN(2) == 0 && len(p.taken) > 0:
			c = p.giveBack()
		case settles:
			c.op = pick(p.source, algorithms.Return, algorithms.Force, algorithms.Force, algorithms.Grant, algorithms.Grant, algorithms.Reset, algorithms.Renew)
			c.beat = p.IntN(4) == 0
			c.of[0] = -1
		default:
			c.op = pick(p.source, algorithms.Take, algorithms.Take, algorithms.Take, algorithms.Trial, algorithms.TrialInstead)
			c.beat = c.op != algorithms.Take
		}
		p.err(&c)
		if !p.several {
			c.l = oneLimit(call.checks, c)
		}
		call.checks = append(call.checks, c)
	}
	return call
}

// oneLimit returns the limit of a check, or that of another on its key in the same call.
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
	c.cost = pick(p.source, c.cost, c.cost, 1, 1+p.Int64N(c.cost))
	if p.IntN(4) == 0 {
		// Under a limit that has changed since.
		for _, l := range p.limits {
			if l.Algorithm() == c.l.Algorithm() {
				c.l = l
			}
		}
	}
	return c
}

// err makes a mistake in a check, or something odd, now and then.
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
		c.cost = 1<<30 + p.Int64N(3) - 1
	}
}

// step moves the clock.
func (p *planner) step() {
	d := p.pause(pick(p.source, p.limits...))
	if p.wait > 0 && p.wait != algorithms.Never && p.IntN(2) == 0 {
		d = p.wait - pick(p.source, 0, 0, µs)
	}
	if at := p.now + d.Microseconds(); at > 1<<50 && at < lastInstant {
		p.now = at
	}
}
