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
// A Return credits min(units, N): units that are in use now, whoever took them. It does not ask which units have
// drained since the take, because busy buckets are never empty, and clients would lose most of what they return. The
// bound: a take needs N <= burst afterwards. So the units taken in an interval are at most burst - N at its start + rate
// x time + the units credited in it. A credit for a take within the interval cancels that take. What is left are
// credits for takes before the interval. So in every interval the final costs are at most burst + rate x time + the
// units that were taken before it and returned in it.
//
// Example: 60 per minute, burst 5. A takes 2 units at 0 s, and B takes 3 at 0.5 s. A returns at 1.5 s. One of the 5
// units has drained at 1 s, so 4 were in use, and 2 are left.
//
// A changed limit. at cuts N to the cap, twice the burst. A changed rate also counts for the time since T.

package step

import (
	"math"
	"math/bits"
)

type tokenBucket struct{ counted }

func (tokenBucket) at(s State, now int64, l *Limit) (State, bool) {
	s.N, s.F = min(s.N, l.Cap), min(s.F, l.R-1)
	switch {
	case s.N == 0:
		return State{T: now}, false
	case s.T > now+tolerance:
		return State{T: now, N: s.N}, true
	case s.T >= now:
		return s, false
	}
	switch k := drained(s, now, s.N, l); k {
	case s.N:
		return State{T: now}, false
	case 0:
		return s, false
	default:
		f := s.F + k*l.B
		return State{T: s.T + k*l.A + f/l.R, N: s.N - k, F: f % l.R}, false
	}
}

// drained returns floor(((now-T)·r - F) / w), at most limit, for now > T.
func drained(s State, now, limit int64, l *Limit) int64 {
	hi, lo := bits.Mul64(uint64(now-s.T), uint64(l.R))
	lo, borrow := bits.Sub64(lo, uint64(s.F), 0)
	hi -= borrow // (now-T)·r >= r > F, so this never falls below 0
	switch {
	case hi >= uint64(l.W):
		return limit
	case hi == 0 && lo < uint64(l.W): // busy keys: a division takes long
		return 0
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

func (b tokenBucket) undo(_, s State, units int64, _ *Receipt, _ *Limit) State {
	return b.grant(s, units)
}

func (tokenBucket) freeAt(s State, units int64, l *Limit) int64 {
	return after(s.T, s.F, s.N+units-l.Burst, l)
}
