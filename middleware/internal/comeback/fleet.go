// The line of a client whose denials several instances share.
//
// An instance does not see the denials of the others. So the limiter keeps the line, beside the limit and under the same key:
// a token bucket of the policy "<policy>~line", whose unit is a µs. Its units come back as time passes, and so the
// instant at which it is full again is the end of the line: the next free instant of the limit. With unit = cost/rate:
//
//	the denial takes   unit
//	end                the end of the line before this take
//	instant            honest, if the line ends before it; otherwise the next of honest + unit, honest + 2 unit, ... from end on
//	and then           if the line ends before the honest instant, it is forced to end one unit after it
//
// A denial that finds an empty line is a first one. Its instant is honest, and a lone client that returns then finds
// its next honest instant at the end of the line, and is again a first one. A denial between the two calls of a first one
// finds the end one unit from now, and moves on to honest + unit.
//
// In a sliding window units may come back sooner than one unit after another. There a denial is a first one if less than a
// unit is in the line: the last instant that was given has passed.
//
// The burst bounds the line. While the line is full, the limiter remembers the denial, and a flood asks the store at
// most as often as units of the limit come back.

package comeback

import (
	"context"
	"strings"
	"time"

	"github.com/penstock-go/penstock/algorithms"
)

const (
	// suffix names the keyspace of lines.
	suffix = "~line"

	// perSecond is the rate of a line: a unit is a µs.
	perSecond = int64(time.Second / time.Microsecond)

	// maxBurst is the longest line in µs. It is the largest burst of a limit, 1 000 s. If the honest wait is longer, the line
	// is this instance's own.
	maxBurst = 1_000_000_000

	// stepBurst rounds bursts up, so that denials that follow each other ask for the same limit.
	stepBurst = int64(time.Second / time.Microsecond)

	// tolerance is how much the clocks of two calls may disagree before a denial seems to be a further one.
	tolerance = int64(10 * time.Millisecond / time.Microsecond)
)

// fleet returns how long the client of a denial waits in µs, by the line that the limiter keeps. It returns false if the
// limiter cannot tell.
func (t *Table) fleet(ctx context.Context, d *Denial, p *place) (int64, bool) {
	first := line{requests: p.limit.Requests()}
	unit, wait := first.plus(p.limit, p.cost).ceil(), p.honest-p.now
	if unit > maxLater.Microseconds() {
		return wait, true // too slow for a line
	}
	burst := (wait + p.later + unit + stepBurst - 1) / stepBurst * stepBurst
	if burst > maxBurst {
		return 0, false
	}
	begin := time.Now()
	check := [1]algorithms.Check{{
		Policy: d.Policy + suffix, Key: strings.Clone(d.Key), // the limiter may keep it
		Limit: algorithms.TokenBucket(perSecond, time.Second).WithBurst(burst), Cost: unit, Fail: algorithms.FailClosed, // and so never ahead
	}}
	if err := t.limiter.Allow(ctx, check[:]); err != nil || check[0].Decision.Source != algorithms.Shared {
		return 0, false
	}
	if !check[0].Decision.Allowed {
		return wait + p.later, true
	}
	end := check[0].Decision.ResetAfter.Microseconds() - unit // from now on; 0 if the line was empty
	honest := wait - min(time.Since(begin).Microseconds(), wait)
	if late := honest - end; late > 0 {
		// The store has waited for its answer since the denial, so the line grows by what is left of the wait. If this
		// fails, later denials find a line that ends too early, and some meet.
		check[0].Op, check[0].Cost, check[0].Decision = algorithms.Force, late, algorithms.Decision{}
		_ = t.limiter.Allow(ctx, check[:])
	}
	return wait + later(p, unit, end, end-wait), true
}

// later returns how much later than the honest wait a denial returns that finds a line of end µs, which ends over µs
// after the honest wait.
func later(p *place, unit, end, over int64) int64 {
	slack := min(unit/4, tolerance)
	if over <= slack || !p.limit.Algorithm().Continuous() && end <= unit+slack {
		return 0
	}
	return min((over-slack+unit-1)/unit*unit, p.later)
}
