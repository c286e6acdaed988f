// Concurrent requests: N units are held by running requests. T is the newest
// instant at which a unit was taken or renewed.
//
// A unit that nobody renews is free a window later, because the process that
// held it may have died. A unit is identified by its take's id and its number
// among the take's units, from 1. So a Return may name units of a take whose
// answer was lost, and it may be repeated. Units are in the order of the
// instants at which they were taken or renewed, so the first units end first.
//
// Example: n = 2 with a window of 30 s. Request A takes a unit at 0 s, and B at
// 5 s. A renews at 20 s, so the order is B (5 s), A (20 s). A third request at
// 25 s is denied. If neither returns, B's unit ends first, at 35 s: RetryAfter
// is 10 s, an upper bound. If B returns at 26 s, its unit is free at once. A
// Return of a unit that has ended changes nothing, because no hold has its take
// and number.

package step

import (
	"cmp"
	"slices"
)

type concurrent struct{}

// A hold is one unit of a take, held for a window from the instant at.
type hold struct{ at, id, unit int64 }

func (concurrent) at(s State, now int64, l *Limit) (State, bool) {
	if s.N == 0 {
		return State{T: now}, false
	}
	changed := false
	if s.T > now+tolerance {
		s, changed = s.holdsBack(now), true
	}
	eff := max(s.T, now)
	if s.T+l.Window <= eff {
		return State{T: now}, true
	}
	ended := 0
	for eff-s.More.holds[ended].at >= l.Window {
		ended++
	}
	if ended > 0 {
		s.More.holds = s.More.holds[ended:] // append copies only live holds
		s.N -= int64(ended)
	}
	return s, changed || ended > 0
}

// holdsBack moves holds from the future to now.
func (s State) holdsBack(now int64) State {
	h := s.More.holds
	for i := len(h) - 1; i >= 0 && h[i].at > now; i-- {
		h[i].at = now
	}
	return s.ordered()
}

// ordered puts the holds in order. There is at least one.
func (s State) ordered() State {
	h := s.More.holds
	slices.SortFunc(h, hold.compare)
	s.T, s.N = h[len(h)-1].at, int64(len(h))
	return s
}

func (h hold) compare(other hold) int {
	return cmp.Or(cmp.Compare(h.at, other.at), cmp.Compare(h.id, other.id), cmp.Compare(h.unit, other.unit))
}

func (concurrent) charge(s State, now, units, id int64, _ *Limit) State {
	if s.More == nil {
		s.More = &More{}
	}
	s.T = max(s.T, now)
	h, first := s.More.holds, hold{s.T, id, 1}
	inOrder := len(h) == 0 || h[len(h)-1].compare(first) < 0
	for unit := range units {
		h = append(h, hold{s.T, id, unit + 1})
	}
	s.More.holds, s.N = h, int64(len(h))
	if !inOrder { // another unit was taken or renewed at the same instant
		return s.ordered()
	}
	return s
}

// grant frees the oldest units, though their requests may still run.
func (concurrent) grant(s State, units int64) State {
	freed := min(units, s.N)
	s.More.holds = s.More.holds[freed:]
	s.N -= freed
	return s
}

// undo frees the last units of the receipt's take, if they are still held.
func (concurrent) undo(_, s State, units int64, r *Receipt, _ *Limit) State {
	h := slices.DeleteFunc(s.More.holds, func(h hold) bool {
		return h.id == r.ID && h.unit > r.Last-units && h.unit <= r.Last
	})
	s.More.holds, s.N = h, int64(len(h))
	if s.N > 0 {
		s.T = h[s.N-1].at
	}
	return s
}

func (concurrent) renew(s State, now int64, r *Receipt, l *Limit) State {
	if s.More == nil {
		s.More = &More{}
	}
	held, t := make([]bool, r.Last+1), max(s.T, now)
	for i := range s.More.holds {
		if h := &s.More.holds[i]; h.id == r.ID && h.unit <= r.Last {
			h.at, held[h.unit] = t, true
		}
	}
	for unit := int64(1); unit <= r.Last; unit++ {
		if !held[unit] && int64(len(s.More.holds)) < l.Cap {
			s.More.holds = append(s.More.holds, hold{t, r.ID, unit})
		}
	}
	return s.ordered()
}

func (concurrent) answer(s State, need int64, l *Limit) Answer {
	return Answer{T: s.T, N: s.N, RetryAt: s.endsFor(need, l), UnitAt: s.endsFor(1, l)}
}

// endsFor returns the instant at which a cost fits if nothing is returned, or 0
// if it fits or never will. A share's cost above its burst waits for all units.
func (s State) endsFor(cost int64, l *Limit) int64 {
	excess := s.N + cost - l.Burst
	switch {
	case excess <= 0 || cost > l.Most || s.N == 0:
		return 0
	case cost > l.Burst:
		return s.T + l.Window
	default:
		return s.More.holds[excess-1].at + l.Window
	}
}
