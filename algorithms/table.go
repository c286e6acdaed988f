package algorithms

import (
	"math"
	"math/bits"
	"time"
)

// tolerance is how far, in µs, a stored instant may lie ahead of the clock
// before it is taken for a clock that stepped back, and repaired. Within it a
// late caller is judged at the stored instant, so nothing moves backwards.
const tolerance = 100_000

// An algorithm is one row of the table: a pure step over states. Package lua
// holds its twin, in the file of the same name. Instants are µs since the Unix
// epoch, and only arguments.
type algorithm interface {
	// at brings a stored state to now under the limit. It reports whether the
	// result must be stored even if nothing is charged: a repair, or a
	// trimmed log.
	at(s state, now int64, l *terms) (state, bool)

	// used is what counts against the burst in a state that at returned.
	used(s state, l *terms) int64

	// charge adds units to a state that at returned. The id is the take's, for
	// algorithms that tell takes apart.
	charge(s state, now, units, id int64) state

	// force is charge for a cost that need not fit: into debt, up to the cap.
	force(s state, now, units, id int64, l *terms) state

	// backfill is charge, as far as it fits, as of an earlier instant.
	backfill(s state, now, units, at int64, l *terms) state

	// grant takes units off a state that at returned.
	grant(s state, units int64) state

	// undo takes units off that the receipt's take had charged, unless they
	// have refilled or rolled away. stored is the state before at, and what it
	// returns may again be of an earlier instant.
	undo(stored, s state, now, units int64, r Receipt, l *terms) state

	// answer fills in what figures are computed from.
	answer(s state, need int64, l *terms) answer

	// retryAt is the instant at which cost need fits, given that it does not
	// fit now and is at most the burst.
	retryAt(a answer, need int64, l *terms) int64

	// unitAt is the same for a cost of one, 0 if one fits.
	unitAt(a answer, l *terms) int64

	// resetAt is the instant at which the full limit is back, 0 if it is.
	resetAt(a answer, l *terms) int64

	// delayUntil is the instant at which a take that has just been charged
	// is to be served, 0 if at once.
	delayUntil(a answer, units int64, l *terms) int64
}

// table holds a row per algorithm: its name in limits, its tag in stored keys,
// and its step. Limits that a store never sees have no step.
var table = [algorithmCount]struct {
	name, tag string
	step      algorithm
}{
	algorithmNobody:               {name: "nobody", tag: "no"},
	algorithmTokenBucket:          {"token-bucket", "tb", tokenBucket{}},
	algorithmLeakyBucket:          {"leaky-bucket", "lb", leakyBucket{}},
	algorithmSlidingWindowCounter: {"sliding-window-counter", "sc", slidingWindowCounter{}},
	algorithmSlidingWindowLog:     {"sliding-window-log", "sl", slidingWindowLog{}},
	algorithmFixedWindow:          {"fixed-window", "fw", fixedWindow{}},
	algorithmCalendarWindow:       {"calendar-window", "cw", fixedWindow{}},
	algorithmConcurrent:           {"concurrent", "co", concurrent{}},
}

// A state is what one key holds; n units are in use. What t and f mean is the
// algorithm's: buckets have n units in use at the instant t + f/rate, windows
// were last written at t, and f is the counter's previous window.
type state struct {
	t, n, f int64
	log     *log // of sliding window logs and concurrent requests only
}

func (s state) empty() bool { return s.n == 0 && s.f == 0 }

// terms are the integers of a limit as steps use them: r units come back every
// w µs (lowest terms), so one unit every a + b/r µs.
type terms struct {
	r, w, a, b       int64
	burst, cap       int64 // for windows the burst is the requests
	most             int64 // what one call may cost: a share's burst, and above it into debt
	requests, window int64 // window in µs; of a calendar a length that stands for it
	calendar         *calendar
}

// fit reports whether a cost fits beside what is used.
func (l *terms) fit(used, need int64) bool {
	return used+need <= l.burst || (used == 0 && need <= l.most)
}

// An answer is what a store says of one check: everything that figures are
// computed from, for every store by the same functions.
type answer struct {
	allowed bool // the check's own verdict
	missing bool // no state was stored, or none that parses
	charged bool
	n, t, f int64 // the state: after the check's charge, or uncharged
	u       int64 // if there is a log: the instant at which one unit is free, and f that for the cost
}

func answerOf(s state) answer { return answer{n: s.n, t: s.t, f: s.f} }

// figures computes a decision from an answer: of cost units, with what earlier
// takes of the call ask from the same key in need.
func figures(a answer, algo Algorithm, op Op, cost, need, now int64, l *terms) Decision {
	step := table[algo].step
	d := Decision{Allowed: a.allowed}
	d.Remaining = max(0, l.burst-step.used(state{t: a.t, n: a.n, f: a.f}, l))
	d.ResetAfter = until(step.resetAt(a, l), now)
	d.UnitAfter = until(step.unitAt(a, l), now)
	if !a.allowed {
		d.RetryAfter = Never
		if need <= l.most {
			d.RetryAfter = until(step.retryAt(a, min(need, l.burst), l), now)
		}
	}
	if a.charged && !op.settles() {
		d.Delay = until(step.delayUntil(a, cost, l), now)
	}
	return d
}

// until returns how long it is from now to an instant, both in µs; 0 if that
// has passed, Never if a Duration cannot express it.
func until(instant, now int64) time.Duration {
	switch µs := instant - now; {
	case instant <= now:
		return 0
	case µs > math.MaxInt64/int64(time.Microsecond):
		return Never
	default:
		return time.Duration(µs) * time.Microsecond
	}
}

// mulDiv returns floor(a·b/c) and whether it is exact, for a, b >= 0 and c > 0
// whose quotient fits; it saturates otherwise.
func mulDiv(a, b, c int64) (quotient int64, exact bool) {
	hi, lo := bits.Mul64(uint64(a), uint64(b))
	if hi >= uint64(c) {
		return math.MaxInt64, false
	}
	q, rem := bits.Div64(hi, lo, uint64(c))
	return int64(min(q, math.MaxInt64)), rem == 0
}

// ceilDiv returns ceil(a/b) for a >= 0, b > 0.
func ceilDiv(a, b int64) int64 {
	q := a / b
	if a%b != 0 {
		q++
	}
	return q
}
