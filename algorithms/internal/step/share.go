// The part of a limit that one of several instances admits alone.
//
// A share keeps the rate exactly, however small: r units per w µs become r·num
// units per w·den µs. The burst is rounded up, so all shares together admit at
// most the whole burst and one unit per instance.
//
// Example: one eighth of 5 per minute. In lowest terms the limit is r = 1 per w
// = 12 s, so the share is 1 per 96 s, with the burst ceil(5/8) = 1. Rounding
// the requests instead would give 0 per minute.
//
// A cost above the share's burst but within the limit's is admitted from an
// empty bucket, into debt (Most, Cap). Large costs stay possible, and the
// long-term rate stays right. In the example, a cost of 3 is admitted when no
// unit is in use, and the next unit 3·96 s later.
//
// Windows become buckets of the same rate, because a bucket carries a debt of
// any size. Their keys keep the window's tag (Scope), so they differ from keys
// of a bucket with the same policy and key.

package step

// Share returns num/den of a valid limit.
func (l Limit) Share(num, den int64) Limit {
	switch l.Row.Refill {
	case Never:
		return l
	case OnReturn:
		return l.places(num, den)
	case Continuously, AtTurns:
		if num == den {
			return l
		}
	}
	part := Limit{Row: l.Row, Scope: l.Scope, Burst: ceilDiv(l.Burst*num, den)}
	if l.Row.Refill != Continuously {
		part.Row = TokenBucket
	}
	part.Requests, part.Window = l.rate(num, den, part.Burst)
	part = part.Reduced()
	part.Most = l.Burst
	part.Cap = min(part.Burst+part.Most, l.Row.MaxUnits)
	return part
}

// Ceiling returns the part of a valid limit for each of n instances that no store connects. All parts together are at most
// the limit, in every interval for which its algorithm promises something. Unlike a Share, a part has the limit's own
// algorithm, its burst is rounded down, and it admits no larger cost. It is false if there is less than a unit for each.
func (l Limit) Ceiling(n int64) (part Limit, ok bool) {
	switch {
	case l.Row.Refill == Never:
		return l, true
	case l.Burst < n:
		return l, false
	case l.Row.Refill != Continuously:
		part = l
		part.Requests, part.Burst = l.Requests/n, l.Requests/n
		return part.Reduced(), true
	}
	part = Limit{Row: l.Row, Scope: l.Scope, Burst: l.Burst / n}
	part.Requests, part.Window = l.rate(1, n, part.Burst)
	return part.Reduced(), true
}

// rate returns num/den of the rate: in lowest terms if a limit can express it,
// and otherwise the nearest lower rate. The slowest rate is one unit in the
// longest window.
func (l *Limit) rate(num, den, burst int64) (requests, window int64) {
	r, w := l.R*num, l.W*den
	g := gcd(r, w)
	r, w = r/g, w/g
	longest, _ := MulDiv(r, MaxWindow, w)
	exact := (MaxExact - 1) / (min(burst+l.Burst, l.Row.MaxUnits) + 1)
	requests = max(1, min(r, maxRateRequests, longest, exact))
	return requests, min(MulDivUp(requests, w, r), MaxWindow)
}

// places returns the part of the units that may be held at a time, at least
// one. It is rounded down, so that all parts together are at most the whole.
// There is no rate to keep.
func (l *Limit) places(num, den int64) Limit {
	part := NewLimit(l.Row, max(1, l.Requests*num/den), l.Window)
	part.Most = l.Burst
	part.Cap = min(part.Burst+part.Most, l.Row.MaxUnits)
	return part
}
