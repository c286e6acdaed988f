// The decision of a policy, and its r and t in RateLimit.

package headers

import (
	"math/bits"
	"time"
)

// A State is a policy's decision.
type State struct {
	// Quota is the policy's. Without one, Write omits the State.
	Quota *Quota

	// Denied is true if this policy denied the request of a denied [Response].
	Denied bool

	// Remaining is the number of units left, without the cost of a denied request.
	Remaining int64

	// RetryAfter is the wait of a denied client.
	RetryAfter time.Duration

	// ResetAfter is the time until the whole limit is back; [Never] if unknown.
	ResetAfter time.Duration

	// UnitAfter is the time until one unit is available, if none remains; [Never] if none returns.
	UnitAfter time.Duration
}

// listed reports whether a response, denied or not, has an item for s. A denial
// lists only the policies that denied, because the t of another policy may end
// after Retry-After. The draft advises against that (section 6).
func (s *State) listed(denied bool) bool {
	return s.Quota.made() && (s.Denied || !denied)
}

// remaining returns r, at least 0 and at most q.
func (s *State) remaining() int64 {
	return min(max(s.Remaining, 0), s.Quota.limit)
}

// effective returns t, the effective window in seconds (section 4 of the draft).
// The client can use no more than r within it. It is at least 1, or 0 if the item
// has no t.
func (s *State) effective(denied bool) int64 {
	q, r := s.Quota, s.remaining()
	switch {
	case q.limit == 0 || q.window == 0:
		return 0
	case denied:
		t, _ := retrySeconds(s.RetryAfter) // 0 for Never
		return t
	case r > 0:
		return max(ceilSeconds(s.lasts()), q.pace(r))
	case s.UnitAfter == Never:
		return 0
	default:
		return waitSeconds(s.UnitAfter)
	}
}

// lasts returns the time for which r has to last: until a window ends, or until
// a bucket has refilled r units.
func (s *State) lasts() time.Duration {
	if !s.Quota.continuous {
		return s.ResetAfter
	}
	return s.Quota.fill - max(s.ResetAfter, 0) // below 0 when in debt
}

// pace returns the seconds in which the rate makes r units, rounded up. r must be
// at most q. The draft asks servers to cap r/t (section 6): without a cap, 90 of
// 100 per minute with one second to go would invite 90 per second.
func (q *Quota) pace(r int64) int64 {
	hi, lo := bits.Mul64(uint64(r), uint64(q.window))
	_, seconds := divCeil(hi, lo, uint64(q.limit)) // at most w, because r <= q
	return int64(seconds)
}
