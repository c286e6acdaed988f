package headers

import (
	"math/bits"
	"time"
)

// A State is what one policy says about one response. Policies that made no
// decision, e.g. because the store was out of reach, have none: headers do not
// invent numbers.
type State struct {
	// Quota is the policy's. A State whose Quota is nil or zero is left out.
	Quota *Quota

	// Denied is true if this policy denied the request. It counts in a denied
	// [Response] only.
	Denied bool

	// Remaining is how many units are left, without the cost of a denied
	// request. Below 0 it is sent as 0, above the limit as the limit.
	Remaining int64

	// RetryAfter is how long a denied client has to wait for this policy,
	// jitter included; [Never] if waiting does not help.
	RetryAfter time.Duration

	// ResetAfter is the time until the whole limit is back.
	ResetAfter time.Duration

	// UnitAfter is the time until one unit is free. It is read if none is.
	UnitAfter time.Duration

	// PartitionKey, if any, is sent as pk and tells clients which of their
	// requests share the quota. It must not let them find out anything else:
	// use a keyed hash. Without it headers stay short, and compress better.
	PartitionKey []byte
}

// A Response is all that the headers of one response say. The zero value says
// nothing.
type Response struct {
	// Quotas are those of all advertised policies, decided or not.
	Quotas []*Quota

	// States are those of the advertised policies that made a decision.
	States []State

	// Denied is true if the request was denied, by any policy, advertised or
	// not.
	Denied bool

	// RetryAfter is the wait of a denied request with respect to all policies,
	// also those that are not advertised. A longer one among the denied States
	// takes precedence, so that Retry-After is never before a t.
	RetryAfter time.Duration

	// Now is the time of the decision, which X needs. If it is zero,
	// X-RateLimit-Reset is left out.
	Now time.Time
}

// wait returns the longest wait of a denied response.
func (resp *Response) wait() time.Duration {
	longest := resp.RetryAfter
	for i := range resp.States {
		if s := &resp.States[i]; s.listed(true) {
			longest = max(longest, s.RetryAfter)
		}
	}
	return longest
}

// listed reports whether a response, denied or not, has an item for s. Denials
// list those that denied only: a healthy policy's t may be later than
// Retry-After, which the draft advises against (section 6).
func (s *State) listed(denied bool) bool {
	return s.Quota.made() && (s.Denied || !denied)
}

// remaining returns r. It is at most q, and so within what an Integer can say.
func (s *State) remaining() int64 {
	return min(max(s.Remaining, 0), s.Quota.limit)
}

// effective returns t, the effective window: the seconds within which the
// client can use no more than r, at least 1; or 0 if there is nothing to say.
func (s *State) effective(denied bool) int64 {
	q, r := s.Quota, s.remaining()
	switch {
	case q.limit == 0 || q.window == 0:
		return 0
	case denied:
		t, _ := RetryAfterSeconds(s.RetryAfter) // 0 if it is Never
		return t
	case r > 0:
		return max(ceilSeconds(s.lasts()), q.pace(r))
	case s.UnitAfter == Never:
		return 0
	default:
		return max(ceilSeconds(s.UnitAfter), 1)
	}
}

// lasts returns for how long r is the most that the client can use, as far as
// the time knows: until a window has rolled away, or what a bucket holds in
// units of time, its credit.
func (s *State) lasts() time.Duration {
	if !s.Quota.continuous {
		return s.ResetAfter
	}
	return s.Quota.fill - max(s.ResetAfter, 0) // below 0 when in debt
}

// pace returns in how many seconds the quota makes r units, rounded up; r is at
// most q. The draft asks for a cap of r/t (section 6): 90 of 100 per minute with
// a second to go would invite 90 per second.
func (q *Quota) pace(r int64) int64 {
	hi, lo := bits.Mul64(uint64(r), uint64(q.window))
	_, seconds := divCeil(hi, lo, uint64(q.limit)) // at most w, since r <= q
	return int64(seconds)
}
