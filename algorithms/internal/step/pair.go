// Pairs of takes: a take, and the one just after it, which depends on it.
//
// A pair is a take (First) and, just after it, a take that depends on it. The first has its own verdict and never
// denies the call; the second speaks for both. A TakeElse passes if one of the two fits, and is charged only if the
// first does not fit. A TakeReserved is charged with the first, if that fits, and may then use the reserve of its
// limit: one burst more. Otherwise it is an ordinary take, and the first is not charged. Both need keys that no other
// take of the call has. So each needs its own cost alone, and the verdict of one never changes the need of another.
//
// Example: a capacity with a burst of 4, of which 5 units are in use. A tenant asks for 1 unit with the pair of its
// share and a TakeReserved of the capacity. If the share has a unit, both are charged, because 5 + 1 <= 2·4. Otherwise
// the call is denied, because 5 + 1 > 4. It fits as soon as the share has a unit, or when two units of the capacity
// have drained, whichever comes first.
//
// When a denied pair passes. Whatever fits once goes on fitting while no other caller spends. So a TakeElse passes at the
// earlier of two instants: when the first fits, or when it fits itself. A TakeReserved passes when it fits in the burst,
// or at the later of two instants, if that comes first: when the share fits, and when it fits in the reserve.

package step

import (
	"fmt"
	"time"
)

var (
	errPair  = fmt.Errorf("algorithms: %w: take-reserved or take-else without a take just before it", ErrInvalid)
	errAlone = fmt.Errorf("algorithms: %w: the keys of a pair of takes are used once in a call", ErrInvalid)
)

// pair makes a pair of an item and the take just before it.
func (c *Call) pair(it *Item) error {
	if row := it.Limit.Row; it.Op == TakeReserved && !row.Reserves && row.step != nil {
		return fmt.Errorf("algorithms: %w: a %s has no reserve to take from", ErrInvalid, row.Name)
	}
	if it.Index == 0 || c.Items[it.Index-1].Op != Take {
		return errPair
	}
	it.Before = c.Items[it.Index-1]
	if it.Before.Op = First; it.Before.Home.others {
		return errAlone
	}
	return nil
}

// Asked returns the op that the caller chose.
func (it *Item) Asked() Op {
	if it.Op == First {
		return Take
	}
	return it.Op
}

// Passes reports whether a take is allowed, once it has its verdict. The second of a pair speaks for both.
func (it *Item) Passes() bool {
	return it.Answer.Allowed || it.Op == TakeElse && it.Before.Answer.Allowed
}

// chosen reports whether a take is to be charged in a call that proceeds.
func (it *Item) chosen() bool {
	if it.Op == TakeElse {
		return !it.Before.Answer.Allowed
	}
	return it.Op.Decides() || it.Op == First && it.Answer.Allowed
}

// reserved reports whether an item may use the reserve of its limit, once the item before it has its verdict.
func (it *Item) reserved() bool { return it.Op == TakeReserved && it.Before.Answer.Allowed }

// pairWait returns how long until a denied pair passes. Its second take fits alone after the wait alone.
func (it *Item) pairWait(alone time.Duration, now int64) time.Duration {
	l, a, wait := &it.Limit, &it.Answer, it.Before.wait
	switch {
	case it.Op == TakeElse:
	case it.Need > l.Most || l.Row.step == nil:
		wait = forever
	case !l.fitsReserve(a.N, it.Need):
		wait = max(wait, Until(l.freeAt(a, min(it.Need, l.Burst+l.reserve())-l.reserve()), now))
	}
	return min(alone, wait)
}
