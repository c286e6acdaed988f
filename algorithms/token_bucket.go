package algorithms

import (
	"math"
	"math/bits"
)

// tokenBucket: at the instant t + f/r exactly n units were in use, and since
// then they drain at r units per w µs. Whole units rather than GCRA's arrival
// time, so that units in use carry over a changed limit one for one.
type tokenBucket struct{}

func (tokenBucket) at(s state, now int64, l *terms) (state, bool) {
	s.n, s.f = min(s.n, l.cap), min(s.f, l.r-1)
	if s.n == 0 {
		return state{t: now}, false
	}
	if s.t > now+tolerance {
		return state{t: now, n: s.n}, true
	}
	if s.t >= now {
		return s, false
	}
	k, _ := drained(s, now, s.n, l)
	if k == s.n {
		return state{t: now}, false
	}
	f := s.f + k*l.b
	return state{t: s.t + k*l.a + f/l.r, n: s.n - k, f: f % l.r}, false
}

// drained returns floor(((now-t)·r - f) / w), at most limit, for now > t, and
// whether that is exactly the number of units that had time to drain.
func drained(s state, now, limit int64, l *terms) (k int64, exact bool) {
	hi, lo := bits.Mul64(uint64(now-s.t), uint64(l.r))
	lo, borrow := bits.Sub64(lo, uint64(s.f), 0)
	hi -= borrow // (now-t)·r >= r > f, so this never falls below 0
	if hi >= uint64(l.w) {
		return limit, false
	}
	q, rem := bits.Div64(hi, lo, uint64(l.w))
	if q >= uint64(limit) {
		return limit, q == uint64(limit) && rem == 0
	}
	return int64(q), rem == 0
}

// after returns the first whole µs at which k units of the state have drained.
func after(t, f, k int64, l *terms) int64 {
	hi, lo := bits.Mul64(uint64(k), uint64(l.a))
	lo, carry := bits.Add64(lo, uint64(t+ceilDiv(f+k*l.b, l.r)), 0)
	if hi+carry > 0 || lo > math.MaxInt64 {
		return math.MaxInt64
	}
	return int64(lo)
}

func (tokenBucket) used(s state, _ *terms) int64 { return s.n }

func (tokenBucket) charge(s state, _, units, _ int64) state {
	s.n += units
	return s
}

func (tokenBucket) force(s state, _, units, _ int64, l *terms) state {
	s.n = min(s.n+units, max(s.n, l.cap))
	return s
}

// backfill charges what has not drained since, and lets the rest of the unit
// that drains by now go as it would have: a client that takes one unit whenever
// there is one must not be denied.
func (b tokenBucket) backfill(s state, now, units, at int64, l *terms) state {
	late, _ := b.at(state{t: min(at, now), n: units}, now, l)
	if units = min(late.n, max(0, l.burst-s.n)); units == 0 {
		return s
	}
	s.n += units
	s.t -= now - late.t
	s, _ = b.at(s, now, l)
	return s
}

func (tokenBucket) grant(s state, units int64) state {
	s.n = max(0, s.n-units)
	return s
}

func (b tokenBucket) undo(stored, s state, now, units int64, r Receipt, l *terms) state {
	if stored.left(r) {
		return b.restore(stored, now, units, l)
	}
	if now <= r.at {
		return b.grant(s, units)
	}
	if k, _ := drained(state{t: r.at}, now, units, l); k == units {
		return s
	}
	return s.without(now, units, r.at, l)
}

// without takes units off a state that others have taken from, or returned to,
// since the receipt's take, but for what had time to refill since: that must
// not be credited again. Had the take never been, the level would be lower by
// the units at first, and this difference shrinks only while that other level
// is empty, so by no more than what drains meanwhile.
//
// What had time to refill is no whole number of units: n - units are in use as
// much later than at the state's instant as the take is old. Moved back by as
// many units as it takes not to lie ahead of now, that is again a state.
func (s state) without(now, units, taken int64, l *terms) state {
	k := min(units, unitsUntil(taken, s, l))
	parts := k * l.b
	t, n := now+s.t-(taken+k*l.a+parts/l.r), s.n-units+k
	f := s.f - parts%l.r
	if f < 0 {
		f, t = f+l.r, t-1
	}
	if n <= 0 {
		return state{t: now}
	}
	return state{t: t, n: n, f: f}
}

// unitsUntil returns how many units drain from an instant until that of the
// state, rounded up; 0 if it is not later.
func unitsUntil(from int64, s state, l *terms) int64 {
	if s.t < from {
		return 0
	}
	hi, lo := bits.Mul64(uint64(s.t-from), uint64(l.r))
	lo, carry := bits.Add64(lo, uint64(s.f), 0)
	if hi += carry; hi >= uint64(l.w) {
		return math.MaxInt64
	}
	q, rem := bits.Div64(hi, lo, uint64(l.w))
	if rem > 0 {
		q++
	}
	return int64(min(q, math.MaxInt64))
}

// left reports whether the stored state is the one that the take left.
func (s state) left(r Receipt) bool { return s.t == r.t && s.n == r.n && s.f == r.f }

// restore puts the state before an untouched take back as it was, not as it
// has drained since: so the receipt's rest can be returned as exactly.
func (b tokenBucket) restore(stored state, now, units int64, l *terms) state {
	stored.n = max(0, stored.n-units)
	if s, repaired := b.at(stored, now, l); repaired || s.empty() {
		return s
	}
	return stored
}

func (tokenBucket) answer(s state, _ int64, _ *terms) answer { return answerOf(s) }

func (tokenBucket) retryAt(a answer, need int64, l *terms) int64 {
	return after(a.t, a.f, a.n+need-l.burst, l)
}

func (b tokenBucket) unitAt(a answer, l *terms) int64 {
	if a.n < l.burst {
		return 0
	}
	return b.retryAt(a, 1, l)
}

func (tokenBucket) resetAt(a answer, l *terms) int64 {
	if a.n == 0 {
		return 0
	}
	return after(a.t, a.f, a.n, l)
}

func (tokenBucket) delayUntil(answer, int64, *terms) int64 { return 0 }
