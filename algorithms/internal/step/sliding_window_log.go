// The sliding window log: N units in entries of (instant, units), oldest first.
// T is the newest entry's instant. An entry counts for one window, [at,
// at+window).
//
// A cost fits when enough of the oldest entries have expired: the excess N +
// cost - requests is counted down by the units of each entry, and the entry
// that brings it to 0 decides.
//
// Example: 3 per 60 s, with the entries (0 s, 1) and (10 s, 2). A cost of 1 has
// the excess 3 + 1 - 3 = 1. The first entry covers it, so it fits at 0 + 60 =
// 60 s. A cost of 2 has the excess 2, needs the second entry, and fits at 70 s.
//
// Invariants: N is the sum of the entries, their instants never decrease, and
// after at no entry is expired.

package step

import (
	"math"
	"slices"
)

type slidingWindowLog struct{}

// An entry is units that were admitted at one instant.
type entry struct{ at, units int64 }

func (slidingWindowLog) at(s State, now int64, l *Limit) (State, bool) {
	if s.N == 0 {
		return State{T: now}, false
	}
	changed := false
	if s.T > now+tolerance {
		s, changed = s.stepBack(now), true
	}
	eff := max(s.T, now)
	if s.T+l.Window <= eff {
		return State{T: now}, true
	}
	expired := 0
	for ; eff-s.More.entries[expired].at >= l.Window; expired++ {
		s.N -= s.More.entries[expired].units
	}
	if expired > 0 {
		s.More.entries = s.More.entries[expired:] // append copies only live entries
	}
	return s, changed || expired > 0
}

// stepBack moves entries from the future to now, as one entry. That keeps their
// sum, and no caller waits longer than a window.
func (s State) stepBack(now int64) State {
	e := s.More.entries
	var sum int64
	for len(e) > 0 && e[len(e)-1].at > now {
		sum += e[len(e)-1].units
		e = e[:len(e)-1]
	}
	s.More.entries = append(e, entry{now, sum})
	s.T = now
	return s
}

func (slidingWindowLog) charge(s State, now, units, _ int64, _ *Limit) State {
	if s.More == nil {
		s.More = &More{}
	}
	s.T = max(s.T, now)
	s.More.entries = append(s.More.entries, entry{s.T, units})
	s.N += units
	return s
}

// grant takes units from the newest entries. That is exact if no take came in between; otherwise some unit may be
// forgotten early.
func (slidingWindowLog) grant(s State, units int64) State {
	return s.forget(units, 0, math.MaxInt64)
}

func (slidingWindowLog) undo(_, s State, units int64, r *Receipt, _ *Limit) State {
	return s.forget(units, r.T, r.T)
}

// forget takes up to units off the entries between two instants, inclusive,
// beginning with the newest.
func (s State) forget(units, oldest, newest int64) State {
	e := s.More.entries
	for i := len(e) - 1; i >= 0 && units > 0 && e[i].at >= oldest; i-- {
		if e[i].at > newest {
			continue
		}
		taken := min(units, e[i].units)
		units -= taken
		s.N -= taken
		if e[i].units -= taken; e[i].units == 0 {
			e = slices.Delete(e, i, i+1)
		}
	}
	s.More.entries = e
	if len(e) > 0 {
		s.T = e[len(e)-1].at
	}
	return s
}

func (slidingWindowLog) answer(s State, need int64, l *Limit) Answer {
	return Answer{T: s.T, N: s.N, RetryAt: s.fitsAt(need, l), UnitAt: s.fitsAt(1, l)}
}

// fitsAt returns the instant at which a cost fits; 0 if it does or never will.
func (s State) fitsAt(cost int64, l *Limit) int64 {
	excess := s.N + cost - l.Requests
	if excess <= 0 || cost > l.Requests {
		return 0
	}
	for _, e := range s.More.entries {
		if excess -= e.units; excess <= 0 {
			return e.at + l.Window
		}
	}
	return s.T + l.Window
}

// listedFreeAt is freeAt of algorithms that hold their units one by one.
func (a *Answer) listedFreeAt(units int64, l *Limit) int64 {
	switch units {
	case l.Burst: // when the newest unit expires
		return a.T + l.Window
	case 1:
		return a.UnitAt
	default:
		return a.RetryAt
	}
}
