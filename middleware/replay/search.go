// The search for the smallest limit that denies few enough, and the curve: what each of some limits would cost and save.
//
// A limit of n requests stands for the whole family of its policy: the algorithm and the
// window stay, and a burst keeps its proportion to n. A bound saves most trials: let b be the
// burst of n, where windows have b = n. If a key never wants more than min(b, n) units in two
// neighbouring windows, the limit denies it nothing.

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

// A goal is a share of clients that a limit may deny.
type goal int

const (
	few     goal = iota // where the report begins
	clients             // of Options
	nobody              // where the report ends
	goals
)

// A search looks for the smallest n in (lo, hi]. lo denies too many clients, and hi does not.
type search struct {
	allowed int64 // denied clients
	lo, hi  int64
	parts   int64 // the search ends within 1 of so many parts of hi
	untried bool  // hi is only the highest that the algorithm can count
	none    bool  // no limit of the algorithm is high enough
}

// precise reports whether the search has ended.
func (s *search) precise() bool {
	return s.none || !s.untried && s.hi-s.lo <= max(1, s.hi/s.parts)
}

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
// cannot count so many. It changes the text, because only that names the zone of a calendar.
func limitOf(l algorithms.Limit, n int64) (algorithms.Limit, bool) {
	words := strings.Fields(l.String())
	_, unit, _ := strings.Cut(words[1], "/")
	words[1] = strconv.FormatInt(n, 10) + "/" + unit
	if !l.Algorithm().Continuous() {
		other, err := algorithms.ParseLimit(strings.Join(words, " "))
		return other, err == nil
	}
	other, err := algorithms.ParseLimit(strings.Join(words[:2], " "))
	other = other.WithBurst(burstOf(l, n))
	return other, err == nil && other.Validate() == nil
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

// begin bounds the search for each series and each goal. It ranks the keys of a series, the largest demand at once
// first.
func (h *history) begin(share [goals]float64) [][]*search {
	ranked := make([][]*key, len(h.series))
	for _, k := range h.keys {
		ranked[k.series] = append(ranked[k.series], k)
		if s := h.series[k.series]; s.top == nil || k.requests > s.top.requests {
			s.top = k
		}
	}
	all := make([][]*search, len(h.series))
	for i, s := range h.series {
		if !s.searchable() {
			continue
		}
		slices.SortFunc(ranked[i], func(x, y *key) int { return cmp.Compare(y.pair, x.pair) })
		for g := range goals {
			f := bound(s, ranked[i], share[g])
			if f.parts = 20; g == clients {
				f.parts = 100
			}
			all[i] = append(all[i], f)
		}
	}
	return all
}

func bound(s *series, keys []*key, share float64) *search {
	f := &search{allowed: int64(share*float64(len(keys)) + 1e-9), hi: 1} // 0.29*100 is less than 29
	// All keys before the first one that exceeds what is allowed may be denied.
	if int(f.allowed) < len(keys) {
		f.hi = safeFor(s.limit, int64(keys[f.allowed].pair))
	}
	n, enough := countable(s.limit, f.hi)
	f.hi, f.untried, f.none = n, !enough, n == 0
	return f
}

// search ends all searches. A trial tells something to each search of its family.
func (h *history) search(ctx context.Context, s *spool, all [][]*search) error {
	for {
		trials := h.round(all)
		if len(trials) == 0 {
			return nil
		}
		if err := h.run(ctx, s, trials...); err != nil {
			return err
		}
		for _, t := range trials {
			for i, limit := range t.limits {
				for _, f := range all[i] {
					if limit != (algorithms.Limit{}) {
						f.learn(int64(t.clients[i]), limit.Requests())
					}
				}
			}
		}
	}
}

// round returns the next trials.
func (h *history) round(all [][]*search) (trials []*trial) {
	for _, g := range [...]goal{clients, few, nobody} { // the first narrows the others
		t := &trial{limits: make([]algorithms.Limit, len(h.series)), most: make([]int64, len(h.series))}
		open := false
		for i, of := range all {
			for of != nil && t.limits[i] == (algorithms.Limit{}) && !of[g].precise() {
				n := of[g].next()
				if limit, exact := limitOf(h.series[i].limit, n); exact {
					t.limits[i], open = limit, true
				} else {
					of[g].lo = n // a rate that is too odd to be exact
				}
			}
			for _, other := range of {
				t.most[i] = max(t.most[i], other.allowed)
			}
		}
		if open {
			trials = append(trials, t)
		}
		if open && g == clients {
			break
		}
	}
	return trials
}

// learn narrows the search by how many clients a limit of n has denied.
func (s *search) learn(denied, n int64) {
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

// A point is a limit of the curve, and what it does.
type point struct {
	Limit    string  `json:"limit"`
	Denied   int64   `json:"denied"`
	Requests float64 `json:"denied_requests"` // share
	Clients  int     `json:"denied_keys"`
	Share    float64 `json:"denied_clients"` // share
	Busiest  int64   `json:"busiest_second"` // requests that pass in it

	N float64 `json:"-"` // requests of the limit
}

// points is how many limits a curve has, if the algorithm can count so many.
const points = 6

// curve returns trials of limits, from the smallest that denies few clients to the one that
// denies nobody.
func (h *history) curve(found [][]*search) (trials []*trial) {
	for range points {
		trials = append(trials, &trial{limits: make([]algorithms.Limit, len(found))})
	}
	for i, of := range found {
		if of != nil && !of[nobody].none {
			h.series[i].plan(trials, i, of[few].hi, of[nobody].hi)
		}
	}
	return trials
}

// plan chooses the limits of a curve.
func (s *series) plan(trials []*trial, i int, from, to int64) {
	from = min(from, max(1, to/2)) // nearly all clients may want the same
	to = max(to, from+points-1)
	step := math.Pow(float64(to)/float64(from), 1.0/(points-1))
	last := int64(0)
	for j, t := range trials {
		n := max(int64(math.Round(float64(from)*math.Pow(step, float64(j)))), min(last+1, to), from)
		if n, enough := countable(s.limit, n); enough && n > last {
			last = n
			t.limits[i], _ = limitOf(s.limit, n)
		}
	}
}

// pointOf returns what a trial has done to a series.
func pointOf(t *trial, i int, s *series) point {
	return point{
		Limit: t.limits[i].String(), N: float64(t.limits[i].Requests()), Busiest: t.passed[i].most,
		Denied: t.total[i], Requests: float64(t.total[i]) / float64(s.requests),
		Clients: t.clients[i], Share: float64(t.clients[i]) / float64(s.keys),
	}
}

// mostDenied returns the denied keys of a series, most denials first.
func (h *history) mostDenied(number int, denials func(keyID) uint32) (denied []client) {
	for id, k := range h.keys {
		if n := denials(keyID(id)); n > 0 && k.series == uint32(number) {
			denied = append(denied, client{k.text, k.requests, n})
		}
	}
	slices.SortFunc(denied, func(a, b client) int {
		return cmp.Or(cmp.Compare(b.Denied, a.Denied), cmp.Compare(a.Key, b.Key))
	})
	return denied[:min(clientsShown, len(denied))]
}

const clientsShown = 5
