package algorithms

import (
	"math"
	"slices"
)

// slidingWindowLog: n units in entries of (instant, units), oldest first; t is
// the newest one's instant. An entry counts for one window.
type slidingWindowLog struct{}

// A log holds the entries of one key. Steps change it in place, and return the
// state that goes with it.
type log struct {
	entries []entry
	holds   []hold // of concurrent requests, in the place of entries
}

type entry struct{ at, units int64 }

func (slidingWindowLog) at(s state, now int64, l *terms) (state, bool) {
	if s.n == 0 {
		return state{t: now}, false
	}
	changed := false
	if s.t > now+tolerance {
		s, changed = stepBack(s, now), true
	}
	eff := max(s.t, now)
	if s.t+l.window <= eff {
		return state{t: now}, true
	}
	expired := 0
	for ; eff-s.log.entries[expired].at >= l.window; expired++ {
		s.n -= s.log.entries[expired].units
	}
	if expired > 0 {
		s.log.entries = s.log.entries[expired:] // append copies only what lives
	}
	return s, changed || expired > 0
}

// stepBack moves entries from the future to now, as one: their sum is kept,
// and nobody waits longer than a window.
func stepBack(s state, now int64) state {
	e := s.log.entries
	var sum int64
	for len(e) > 0 && e[len(e)-1].at > now {
		sum += e[len(e)-1].units
		e = e[:len(e)-1]
	}
	s.log.entries = append(e, entry{now, sum})
	s.t = now
	return s
}

func (slidingWindowLog) used(s state, _ *terms) int64 { return s.n }

func (slidingWindowLog) charge(s state, now, units, _ int64) state {
	if s.log == nil {
		s.log = &log{}
	}
	s.t = max(s.t, now)
	s.log.entries = append(s.log.entries, entry{s.t, units})
	s.n += units
	return s
}

func (w slidingWindowLog) force(s state, now, units, id int64, l *terms) state {
	if units = min(units, l.cap-s.n); units <= 0 {
		return s
	}
	return w.charge(s, now, units, id)
}

// backfill adds an entry of the instant, or of the newest entry's if that is
// later: entries stand in order.
func (w slidingWindowLog) backfill(s state, now, units, at int64, l *terms) state {
	newest := s.t
	if s.n == 0 {
		newest = 0
	}
	units, at = min(units, max(0, l.requests-s.n)), max(newest, min(at, now))
	if units == 0 || at+l.window <= now {
		return s
	}
	s.t = newest
	return w.charge(s, at, units, 0)
}

// grant takes from the newest entries: exact if nothing came in between, else
// some unit may be forgotten early.
func (slidingWindowLog) grant(s state, units int64) state {
	return s.forget(units, 0, math.MaxInt64)
}

func (slidingWindowLog) undo(_, s state, _, units int64, r Receipt, _ *terms) state {
	return s.forget(units, r.t, r.t)
}

// forget takes up to units off the entries from oldest to newest (instants,
// inclusive), beginning with the newest.
func (s state) forget(units, oldest, newest int64) state {
	if s.n == 0 {
		return s
	}
	e := s.log.entries
	for i := len(e) - 1; i >= 0 && units > 0 && e[i].at >= oldest; i-- {
		if e[i].at > newest {
			continue
		}
		taken := min(units, e[i].units)
		units -= taken
		s.n -= taken
		if e[i].units -= taken; e[i].units == 0 {
			e = slices.Delete(e, i, i+1)
		}
	}
	s.log.entries = e
	if len(e) > 0 {
		s.t = e[len(e)-1].at
	}
	return s
}

// answer carries instants in f and u, since a store that is asked for figures
// later would need the entries again.
func (w slidingWindowLog) answer(s state, need int64, l *terms) answer {
	a := answer{n: s.n, t: s.t}
	a.f = s.freeAt(need, l)
	a.u = s.freeAt(1, l)
	return a
}

// freeAt returns the instant at which cost fits; 0 if it does or never will.
func (s state) freeAt(cost int64, l *terms) int64 {
	excess := s.n + cost - l.requests
	if excess <= 0 || cost > l.requests {
		return 0
	}
	for _, e := range s.log.entries {
		if excess -= e.units; excess <= 0 {
			return e.at + l.window
		}
	}
	return s.t + l.window
}

func (slidingWindowLog) retryAt(a answer, _ int64, _ *terms) int64 { return a.f }

func (slidingWindowLog) unitAt(a answer, _ *terms) int64 { return a.u }

func (slidingWindowLog) resetAt(a answer, l *terms) int64 {
	if a.n == 0 {
		return 0
	}
	return a.t + l.window
}

func (slidingWindowLog) delayUntil(answer, int64, *terms) int64 { return 0 }
