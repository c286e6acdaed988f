package algorithms

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"sync/atomic"
)

// concurrent: n units are held by requests that run; t is the newest instant at
// which one was taken or renewed. A unit that nobody renews is free a window
// after that: the process that held it may have died.
type concurrent struct{}

// A hold is one unit of a take, from at on for a window. It is known by the
// instant of its take, the take's id, and its place among the take's units, from
// 1. Holds stand in the order of at, and then of these.
type hold struct{ at, born, id, unit int64 }

// A renewer is an algorithm whose takes end by themselves unless renewed.
type renewer interface {
	// renew moves what the receipt's take holds to now, in a state that at
	// returned. What has ended meanwhile is held again, up to the cap.
	renew(s state, now int64, r Receipt, l *terms) state
}

// ids number the takes of this process, from anywhere: together with the instant
// of the take, no other process has the same.
var ids = func() *atomic.Int64 {
	var ids atomic.Int64
	ids.Store(rand.Int64N(maxExact / 2))
	return &ids
}()

func (concurrent) at(s state, now int64, l *terms) (state, bool) {
	if s.n == 0 {
		return state{t: now}, false
	}
	changed := false
	if s.t > now+tolerance {
		s, changed = s.holdsBack(now), true
	}
	eff := max(s.t, now)
	if s.t+l.window <= eff {
		return state{t: now}, true
	}
	ended := 0
	for eff-s.log.holds[ended].at >= l.window {
		ended++
	}
	if ended > 0 {
		s.log.holds = s.log.holds[ended:] // append copies only what lives
		s.n -= int64(ended)
	}
	return s, changed || ended > 0
}

// holdsBack moves holds from the future to now.
func (s state) holdsBack(now int64) state {
	h := s.log.holds
	for i := len(h) - 1; i >= 0 && h[i].at > now; i-- {
		h[i].at = now
	}
	return s.ordered()
}

// ordered puts the holds, of which there is one, in order.
func (s state) ordered() state {
	h := s.log.holds
	slices.SortFunc(h, hold.compare)
	s.t, s.n = h[len(h)-1].at, int64(len(h))
	return s
}

func (h hold) compare(other hold) int {
	return cmp.Or(cmp.Compare(h.at, other.at), cmp.Compare(h.born, other.born), cmp.Compare(h.id, other.id), cmp.Compare(h.unit, other.unit))
}

func (concurrent) used(s state, _ *terms) int64 { return s.n }

func (concurrent) charge(s state, now, units, id int64) state {
	if s.log == nil {
		s.log = &log{}
	}
	s.t = max(s.t, now)
	h, first := s.log.holds, hold{s.t, s.t, id, 1}
	inOrder := len(h) == 0 || h[len(h)-1].compare(first) < 0
	for unit := range units {
		h = append(h, hold{s.t, s.t, id, unit + 1})
	}
	s.log.holds, s.n = h, int64(len(h))
	if !inOrder { // something was taken or renewed at the same instant
		return s.ordered()
	}
	return s
}

func (c concurrent) force(s state, now, units, id int64, l *terms) state {
	if units = min(units, l.cap-s.n); units <= 0 {
		return s
	}
	return c.charge(s, now, units, id)
}

// backfill does nothing: what runs without the store ends without it.
func (concurrent) backfill(s state, _, _, _ int64, _ *terms) state { return s }

// grant frees the oldest units, though what holds them may still run.
func (concurrent) grant(s state, units int64) state {
	if s.n == 0 {
		return s
	}
	freed := min(units, s.n)
	s.log.holds = s.log.holds[freed:]
	s.n -= freed
	return s
}

// undo frees the last units of the receipt's take, if they are still held.
func (concurrent) undo(_, s state, _, units int64, r Receipt, _ *terms) state {
	h := slices.DeleteFunc(s.log.holds, func(h hold) bool {
		return h.of(r) && h.unit > r.n-units && h.unit <= r.n
	})
	s.log.holds, s.n = h, int64(len(h))
	if s.n > 0 {
		s.t = h[s.n-1].at
	}
	return s
}

func (h hold) of(r Receipt) bool { return h.born == r.t && h.id == r.f }

func (concurrent) renew(s state, now int64, r Receipt, l *terms) state {
	if s.log == nil {
		s.log = &log{}
	}
	held, t := make([]bool, r.n+1), max(s.t, now)
	for i := range s.log.holds {
		if h := &s.log.holds[i]; h.of(r) && h.unit <= r.n {
			h.at, held[h.unit] = t, true
		}
	}
	for unit := int64(1); unit <= r.n; unit++ {
		if !held[unit] && int64(len(s.log.holds)) < l.cap {
			s.log.holds = append(s.log.holds, hold{t, r.t, r.f, unit})
		}
	}
	return s.ordered()
}

// answer carries instants in f and u, as a log's does.
func (concurrent) answer(s state, need int64, l *terms) answer {
	return answer{n: s.n, t: s.t, f: s.endsFor(need, l), u: s.endsFor(1, l)}
}

// endsFor returns the instant at which cost fits even if nothing is returned; 0
// if it does or never will. A share's cost above its burst waits for all.
func (s state) endsFor(cost int64, l *terms) int64 {
	excess := s.n + cost - l.burst
	switch {
	case excess <= 0 || cost > l.most || s.n == 0:
		return 0
	case cost > l.burst:
		return s.t + l.window
	default:
		return s.log.holds[excess-1].at + l.window
	}
}

func (concurrent) retryAt(a answer, _ int64, _ *terms) int64 { return a.f }

func (concurrent) unitAt(a answer, _ *terms) int64 { return a.u }

func (concurrent) resetAt(a answer, l *terms) int64 {
	if a.n == 0 {
		return 0
	}
	return a.t + l.window
}

func (concurrent) delayUntil(answer, int64, *terms) int64 { return 0 }
