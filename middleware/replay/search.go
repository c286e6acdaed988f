// The search for the smallest limit that denies few enough.
//
// A limit of n requests stands for the whole family of its policy: the algorithm and the
// window stay, and a burst keeps its proportion to n. Two bounds save most trials. Let b
// be the burst of n, where windows have b = n.
//
//   - If a key never wants more than min(b, n) units in two neighbouring windows, the
//     limit denies it nothing.
//   - The limit admits at most n + b units of a key in one window. If the key wants more,
//     the limit denies the excess.

package replay

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/penstock-go/penstock/algorithms"
)

// A goal is what a search wants few of.
type goal int

const (
	requests goal = iota
	clients
	goals
)

// A search looks for the smallest n in (lo, hi]. lo denies too much, and hi does not.
type search struct {
	series  *series
	allowed int64 // denied requests, or denied clients
	lo, hi  int64
	untried bool // hi is only the highest that the algorithm can count
	none    bool // no limit of the algorithm is high enough
}

// precise reports whether the search has ended, within 1 %.
func (s *search) precise() bool { return s.none || !s.untried && s.hi-s.lo <= max(1, s.hi/100) }

// next returns the n to try, with few digits: most rates with many are not exact.
func (s *search) next() int64 {
	if s.untried {
		return s.hi
	}
	mid, step := int64(math.Sqrt(float64(max(1, s.lo))*float64(s.hi))), int64(1)
	for mid/step >= 10_000 {
		step *= 10
	}
	return min(max(mid/step*step, s.lo+1), s.hi-1)
}

// countable returns an n from units on whose limit is exact, with few digits. If the
// algorithm cannot count so many, it returns a power of ten that it can count, and false.
func countable(l algorithms.Limit, units int64) (n int64, enough bool) {
	step := int64(1)
	for ; step <= units; step *= 10 {
		n := (units + step - 1) / step * step
		if _, ok := limitOf(l, n); ok {
			return n, true
		}
	}
	for ; step > 0; step /= 10 {
		if _, ok := limitOf(l, step); ok {
			return step, false
		}
	}
	return 0, false
}

// limitOf returns the limit of n requests in the family of l, or false if the algorithm
// cannot count so many.
func limitOf(l algorithms.Limit, n int64) (algorithms.Limit, bool) {
	if l.Algorithm().Calendar() {
		return calendarOf(l, n)
	}
	for _, limit := range alternatives {
		if other := limit(n, l.Window()); other.Algorithm() == l.Algorithm() {
			if l.Algorithm().Continuous() {
				other = other.WithBurst(burstOf(l, n))
			}
			return other, other.Validate() == nil
		}
	}
	return l, false
}

// beyondAll is more units than any algorithm counts.
const beyondAll = 1e15

func burstOf(l algorithms.Limit, n int64) int64 {
	return int64(min(math.Ceil(float64(n)*float64(l.Burst())/float64(l.Requests())), beyondAll))
}

// safeFor returns the least n whose limit denies nothing to keys that never want more
// than so many units in two windows.
func safeFor(l algorithms.Limit, units int64) int64 {
	if l.Burst() >= l.Requests() {
		return max(1, units)
	}
	return max(1, int64(min(math.Ceil(float64(units)*float64(l.Requests())/float64(l.Burst())), beyondAll)))
}

// excessOf returns the units above which a limit of n certainly denies some of a window.
func excessOf(l algorithms.Limit, n int64) int64 { return n + burstOf(l, n) }

// begin bounds the search for each series and each goal.
func (h *history) begin(share [goals]float64) [][goals]*search {
	ranked := h.ranked()
	all := make([][goals]*search, len(h.series))
	for i, s := range h.series {
		if !searchable(s.limit) || s.tally.requests == 0 {
			continue
		}
		for g := range goals {
			all[i][g] = h.bound(s, ranked[i], g, share[g])
		}
	}
	return all
}

// ranked returns the keys of each series, the largest demand at once first.
func (h *history) ranked() [][]keyID {
	ranked := make([][]keyID, len(h.series))
	for i, s := range h.series {
		ranked[i] = make([]keyID, 0, s.keys)
	}
	for id := range h.keys.n {
		k := h.keys.at(id)
		ranked[k.series] = append(ranked[k.series], id)
	}
	for _, ids := range ranked {
		slices.SortFunc(ids, func(x, y keyID) int { return cmp.Compare(h.keys.at(y).pair, h.keys.at(x).pair) })
	}
	return ranked
}

func (h *history) bound(s *series, ids []keyID, g goal, share float64) *search {
	total := s.tally.requests
	if g == clients {
		total = int64(len(ids))
	}
	f := &search{series: s, allowed: int64(share*float64(total) + 1e-9)} // 0.29*100 is less than 29
	// All keys before the first one that exceeds what is allowed may be denied.
	var denied int64
	for _, id := range ids {
		k := h.keys.at(id)
		if g == clients {
			denied++
		} else {
			denied += int64(k.requests)
		}
		if denied > f.allowed {
			f.hi = safeFor(s.limit, int64(k.pair))
			break
		}
	}
	n, enough := countable(s.limit, max(f.hi, 1))
	f.hi, f.untried, f.none = n, !enough, n == 0
	if !s.settles { // a settlement makes room, or charges beyond the limit
		f.lo = f.below(h, ids, g)
	}
	return f
}

// below returns the highest n that certainly denies too much.
func (s *search) below(h *history, ids []keyID, g goal) int64 {
	tooMuch := func(n int64) bool {
		excess, denied := excessOf(s.series.limit, n), int64(0)
		if g == requests {
			for units, windows := range s.series.full {
				denied += max(0, int64(units)-excess) * windows
			}
			return denied/max(1, s.series.dearest) > s.allowed
		}
		for _, id := range ids {
			k := h.keys.at(id)
			if int64(k.pair) <= excess { // and so are the peaks of all further keys
				break
			}
			if int64(k.peak) > excess {
				denied++
			}
		}
		return denied > s.allowed
	}
	lo, hi := int64(0), s.hi
	for hi-lo > 1 {
		if mid := lo + (hi-lo)/2; tooMuch(mid) {
			lo = mid
		} else {
			hi = mid
		}
	}
	return lo
}

// search finds the smallest limits of all series for both goals.
func (h *history) search(ctx context.Context, s *spool, share [goals]float64) ([][goals]*search, error) {
	all := h.begin(share)
	for {
		trials, tried := h.round(all)
		if len(trials) == 0 {
			return all, nil
		}
		if err := h.run(ctx, s, trials...); err != nil {
			return nil, err
		}
		for j, t := range trials {
			for i, n := range tried[j] {
				if n == 0 {
					continue
				}
				for _, f := range all[i] {
					f.learn(t.tallies[i].denied, int64(t.clients[i]), n, f == all[i][clients])
				}
			}
		}
	}
}

// round returns the next trials, and the n of each series in each of them.
func (h *history) round(all [][goals]*search) (trials []*trial, tried [][]int64) {
	for g := range goals {
		t := &trial{limits: make([]algorithms.Limit, len(h.series))}
		ns := make([]int64, len(h.series))
		open := false
		for i, s := range h.series {
			for f := all[i][g]; f != nil && !f.precise(); {
				n := f.next()
				if limit, ok := limitOf(s.limit, n); ok {
					t.limits[i], ns[i], open = limit, n, true
					break
				}
				f.lo = n // a rate that is too odd to be exact
			}
		}
		if open {
			trials, tried = append(trials, t), append(tried, ns)
		}
	}
	return trials, tried
}

// learn narrows the search by what a limit of n has denied.
func (s *search) learn(denied, deniedClients, n int64, ofClients bool) {
	if ofClients {
		denied = deniedClients
	}
	switch {
	case denied <= s.allowed && s.untried:
		s.hi, s.untried = n, false
	case denied <= s.allowed:
		s.hi = min(s.hi, max(n, s.lo+1))
	case s.untried && n >= s.hi:
		s.none = true
	default:
		s.lo = max(s.lo, min(n, s.hi-1))
	}
}

// calendarOf changes the number in the text of a limit: only the text names the zone.
func calendarOf(l algorithms.Limit, n int64) (algorithms.Limit, bool) {
	words := strings.Fields(l.String())
	_, unit, _ := strings.Cut(words[1], "/")
	words[1] = strconv.FormatInt(n, 10) + "/" + unit
	other, err := algorithms.ParseLimit(strings.Join(words, " "))
	return other, err == nil
}
