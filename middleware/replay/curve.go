// The curve: what each of some limits would cost and save.

package replay

import (
	"cmp"
	"math"
	"slices"

	"github.com/penstock-go/penstock/algorithms"
)

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
