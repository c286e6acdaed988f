// The token bucket. A state says: at the instant T + F/r exactly N units were in use, and since then they drain at r
// units per w µs.
//
// That is GCRA (ITU-T I.371) with whole units in the place of a bare arrival time. Units in use carry over a changed
// limit one for one; an arrival time would be scaled by the new rate.
//
// Draining. By now (now > T), floor(((now-T)·r - F) / w) units have drained. The product may need 128 bits. The instant
// of the k-th unit is T + (F + k·w)/r, which with w = a·r + b is T + k·a + (F + k·b)/r: the new T takes the whole part
// and the new F the rest, so no fraction of a unit is ever lost.
//
// Example: 90 per minute is r = 3 per w = 2 000 000 µs, so a = 666 666 and b = 2. Five units are in use at T = 0, F =
// 0. By now = 1 000 000, floor(3 000 000 / 2 000 000) = 1 has drained, at 666 666 + 2/3 µs: T = 666 666, F = 2, N = 4.
//
// A raised rate. Between T and the last charge less than a unit drained, at the rate of that time. The state does not
// say which rate that was, and at a raised rate the same time could be worth a whole burst. So a charge notes its own
// instant (More.last). If at the present rate one unit or more would have drained between T and last, the rate was
// raised, and units drain from last on: under an unchanged rate the charge would have moved T on. A charge notes
// nothing if it came at most briefly µs after T, or if it left at most a 16th of the burst in use. Then a raise adds at
// most the refill of that time, or that 16th. A state that has left its T, after a return or a backfill, notes that
// instant as well.
//
// Returning. If the state that a take left is still stored, undo puts the state before the take back, exactly.
// Otherwise others have taken or returned since, and units that had time to refill must not be credited again. Without
// the take, the level would have been lower by its units at first. This difference shrinks only while the lower level
// is empty, so by at most the units that have drained since the take. The method without credits the other units.
//
// Example: 60 per minute. A takes 2 units at 0 s, and B takes 3 at 0.5 s. A returns at 1.5 s. One unit has drained
// since A's take, so one of its two units is credited: 3 are in use at 1.5 s. At 2.5 s two units have drained, and A's
// return credits nothing.
//
// Three facts show whether a take is still in the state.
//   - Under one rate, takes and returns of the latest take leave T on the instants at which units drain. So t·r + f
//     modulo w, the phase, stays the same, and equals the receipt's phase. Any other return moves T, and may leave a
//     state that equals an older state. It marks the state as mixed until it is empty. A mixed state notes by how many
//     µs T has left its phase (rate.shift), and its receipts do, too. Every charge of a mixed state notes its instant,
//     which distinguishes the latest take from others.
//   - A receipt notes the rate of its take, because units that drained at another rate may have led to the same phase.
//     Under another rate it can only be put back exactly. The state notes its rate as well, from the first charge on
//     that may be returned (Item.Returns) until it is empty, and while it is mixed.
//   - A Reset, a repair of the clock, a lowered limit that cuts units, and a write at another rate than the noted
//     one begin a new era.
//
// Most takes are never returned. A note needs 48 to 80 bytes in Redis, and a SET rather than an INCRBY, so callers have
// to ask for it. Without it, one case is left: others used the bucket at a faster rate, and the first is in
// force again. A receipt from before passes if the faster rate has led to the same phase. That is so for 1 of w
// instants at which a take finds the bucket empty, and for 1 of k units that drain at k times the rate. Such a receipt
// credits units of other takes, at most its own number.
//
// A lowered limit. at cuts N to the cap, twice the burst, so a charge under a lowered limit forgets the units above.

package step

import (
	"math"
	"math/bits"
)

type tokenBucket struct{}

const (
	// briefly is how long after T, in µs, a charge need not note its instant.
	briefly = 10_000

	// fewOf is the part of the burst, a 16th, that needs no instant either.
	fewOf = 16
)

func (tokenBucket) at(s State, now int64, l *Limit) (State, bool) {
	s.F = min(s.F, l.R-1)
	if s.N == 0 {
		return s.emptied(now), false
	}
	if noted := s.rate(); s.N > l.Cap || noted.w > 0 && (noted.r != l.R || noted.w != l.W) {
		last := s.last()
		s = s.reborn(now) // ends the receipts of units that are forgotten, and of the other rate
		s.N, s.More.last = min(s.N, l.Cap), last
	}
	if last := s.last(); last > s.T && drained(s, last, 1, l) > 0 { // the rate was raised
		s.T, s.F = last, 0
	}
	if s.T > now+tolerance {
		return State{T: now, N: s.N, More: s.More}.reborn(now), true
	}
	if s.T >= now {
		return s, false
	}
	k := drained(s, now, s.N, l)
	if k == s.N {
		return s.emptied(now), false
	}
	f := s.F + k*l.B
	s.T, s.N, s.F = s.T+k*l.A+f/l.R, s.N-k, f%l.R
	return s, false
}

// drained returns floor(((now-T)·r - F) / w), at most limit, for now > T.
func drained(s State, now, limit int64, l *Limit) int64 {
	hi, lo := bits.Mul64(uint64(now-s.T), uint64(l.R))
	lo, borrow := bits.Sub64(lo, uint64(s.F), 0)
	hi -= borrow // (now-T)·r >= r > F, so this never falls below 0
	if hi >= uint64(l.W) {
		return limit
	}
	q, _ := bits.Div64(hi, lo, uint64(l.W))
	return int64(min(q, uint64(limit)))
}

// after returns the first whole µs at which k units of a state at t + f/r have
// drained.
func after(t, f, k int64, l *Limit) int64 {
	hi, lo := bits.Mul64(uint64(k), uint64(l.A))
	lo, carry := bits.Add64(lo, uint64(t+ceilDiv(f+k*l.B, l.R)), 0)
	if hi+carry > 0 || lo > math.MaxInt64 {
		return math.MaxInt64
	}
	return int64(lo)
}

func (tokenBucket) used(s State, _ *Limit) int64 { return s.N }

func (tokenBucket) charge(s State, now, units, _ int64, l *Limit) State {
	s.N += units
	switch notes := s.mixed() || now-s.T > briefly && s.N > l.Burst/fewOf; {
	case notes && s.More == nil:
		s.More = &More{last: now}
	case notes:
		s.More.last = max(s.More.last, now)
	case s.More != nil && s.More.last <= s.T:
		s.More.last = 0
	}
	return s
}

func (tokenBucket) note(s State, l *Limit) State {
	if s.rate().w > 0 {
		return s
	}
	if s.More == nil {
		s.More = &More{}
	}
	s.More.rate = &rate{l.W, l.R, l.W}
	return s
}

// backfill charges the units that have not drained since at. It keeps the fraction of the unit that drains next, so
// that a client which takes every unit as soon as it is free is not denied.
func (b tokenBucket) backfill(s State, now, units, at int64, l *Limit) State {
	late, _ := b.at(State{T: min(at, now), N: units}, now, l)
	if units = min(late.N, max(0, l.Burst-s.N)); units == 0 {
		return s
	}
	s.N += units
	return b.shifted(s, now, late.T-now, l)
}

func (tokenBucket) grant(s State, units int64, l *Limit) State {
	if s.N -= units; s.N <= 0 {
		return s.emptied(s.T)
	}
	s.More = &More{last: s.last(), era: s.Era(), rate: &rate{s.rate().shift % l.W, l.R, l.W}}
	return s
}

func (b tokenBucket) undo(stored, s State, now, units int64, r *Receipt, l *Limit) State {
	if stored.left(r) {
		return b.restore(stored, now, units, l)
	}
	now = max(now, s.T) // a late caller is judged at the stored instant
	if now > r.At && drained(State{T: r.At}, now, units, l) == units {
		return s
	}
	if r.R != l.R || r.W != l.W || phase(s.T-s.rate().shift, s.F, l) != phase(r.T-r.Shift, r.F, l) {
		return s // the take is not in this state
	}
	if now <= r.At {
		return b.grant(s, units, l)
	}
	return b.without(s, now, units, r.At, l)
}

// without takes units off a state that others have changed since the take.
//
// The refill since the take is rarely a whole number of units, so the state
// moves instead: without the take, N - units were in use at T + (now - taken).
// That may lie in the future; the state steps back by whole units until it does
// not.
func (b tokenBucket) without(s State, now, units, taken int64, l *Limit) State {
	k := min(units, unitsUntil(taken, s, l))
	parts := k * l.B
	t, n := s.T-(k*l.A+parts/l.R), s.N-units+k
	f := s.F - parts%l.R
	if f < 0 {
		f, t = f+l.R, t-1
	}
	if n <= 0 {
		return s.emptied(now)
	}
	return b.shifted(State{T: t, N: n, F: f, More: s.More}, now, now-taken, l)
}

// shifted moves a state by some µs, off the instants at which it drained until now, and brings it to now. No state
// precedes the epoch.
func (b tokenBucket) shifted(s State, now, by int64, l *Limit) State {
	era, shift := s.Era(), s.rate().shift+by%l.W
	s.T += by
	s.More = nil // the last charge says nothing of the new T
	s, _ = b.at(s, now, l)
	s.T = max(s.T, 0)
	if s.N > 0 {
		s.More = &More{last: now, era: era, rate: &rate{(shift%l.W + l.W) % l.W, l.R, l.W}}
	} else if era > 0 {
		s.More = &More{era: era}
	}
	return s
}

// phase returns the place of t + f/r between two instants that are a unit's time apart, in parts of 1/r µs: (t·r + f)
// mod w.
func phase(t, f int64, l *Limit) uint64 {
	if t %= l.W; t < 0 {
		t += l.W
	}
	hi, lo := bits.Mul64(uint64(t), uint64(l.R))
	lo, carry := bits.Add64(lo, uint64(f), 0)
	return bits.Rem64(hi+carry, lo, uint64(l.W))
}

// unitsUntil returns how many units drain from an instant until the state's instant, rounded up; 0 if the state is not
// later.
func unitsUntil(from int64, s State, l *Limit) int64 {
	if s.T < from {
		return 0
	}
	hi, lo := bits.Mul64(uint64(s.T-from), uint64(l.R))
	lo, carry := bits.Add64(lo, uint64(s.F), 0)
	if hi += carry; hi >= uint64(l.W) {
		return math.MaxInt64
	}
	q, rem := bits.Div64(hi, lo, uint64(l.W))
	if rem > 0 {
		q++
	}
	return int64(min(q, math.MaxInt64))
}

// left reports whether the stored state is unchanged since the take.
func (s State) left(r *Receipt) bool {
	return s.T == r.T && s.N == r.N && s.F == r.F && (!s.mixed() || s.last() == r.At)
}

// restore takes units off the state that their take left. It returns the state as it was then, undrained, so that the
// rest of the receipt can be returned as exactly.
func (b tokenBucket) restore(stored State, now, units int64, l *Limit) State {
	stored.N = max(0, stored.N-units)
	if s, repaired := b.at(stored, now, l); repaired || !s.Spent() {
		return s
	}
	return stored
}

func (tokenBucket) answer(s State, _ int64, _ *Limit) Answer { return answerOf(s) }

func (tokenBucket) freeAt(a Answer, units int64, l *Limit) int64 {
	return after(a.T, a.F, a.N+units-l.Burst, l)
}
