// What the report counts: series, their keys, and the decisions on them.

package replay

import (
	"cmp"
	"math"
	"strings"
	"time"

	"github.com/penstock-go/penstock/algorithms"
)

// A series is one limit of a policy: a policy has a series for each plan, and for each
// route if its key contains the route.
type series struct {
	policy string
	route  string // "": the key has none
	limit  algorithms.Limit
	keys   int // distinct

	requests, denied int64
	deniedKeys       int
	longest          time.Duration // wait
	minute, worst    minute        // the present one, and the worst so far
	calls            peak

	window  int64  // µs
	top     *key   // with the most requests
	address bool   // some keys are addresses
	settles bool   // some decisions were settled
	pair    string // the field of the Policy that makes decisions depend on another limit; "": none
	first   int64  // µs: the first request
	last    int64
}

// A peak is the most requests of one second.
type peak struct{ second, n, most int64 }

func (p *peak) add(now int64) {
	if at := now / micros; at != p.second {
		p.second, p.n = at, 0
	}
	p.n++
	p.most = max(p.most, p.n)
}

// A minute has the requests of one minute.
type minute struct {
	Start    time.Time `json:"start"`
	Requests int64     `json:"requests"`
	Denied   int64     `json:"denied"`
}

// A keyID numbers the keys of all series.
type keyID uint32

// A key is what is known of a key of a series.
type key struct {
	text     string
	series   uint32
	requests uint32
	denied   uint32
	now, was uint32 // units in the present window and in the one before
	pair     uint32 // the most units in two windows, one after the other
	lo, hi   int64  // the highest limit that denies it, and the lowest that does not, so far
	window   int64  // the number of the present window
}

// A history has the series and the keys of the engine's decisions.
type history struct {
	series  []*series
	numbers map[seriesID]uint32
	keys    []*key              // by their IDs
	ids     map[[2]string]keyID // by the policy, or its candidate, and the text
}

type seriesID struct {
	policy, route string
	limit         algorithms.Limit
}

// record counts an answered check with its verdict.
func (h *history) record(now int64, c *algorithms.Check, d *algorithms.Decision) keyID {
	id, known := h.ids[[2]string{c.Policy, c.Key}]
	if !known {
		k := &key{text: strings.Clone(c.Key), series: h.find(c), window: math.MinInt64, hi: math.MaxInt64}
		id = keyID(len(h.keys))
		h.keys = append(h.keys, k)
		h.ids[[2]string{h.series[k.series].policy, k.text}] = id
	}
	k := h.keys[id]
	h.series[k.series].count(k, now, d)
	return id
}

// find returns the series of a new key.
func (h *history) find(c *algorithms.Check) uint32 {
	id := seriesID{c.Policy, routeOf(c.Key), c.Limit}
	number, ok := h.numbers[id]
	if !ok {
		number = uint32(len(h.series))
		id.policy, id.route = strings.Clone(id.policy), strings.Clone(id.route)
		h.numbers[id] = number
		h.series = append(h.series, &series{
			policy: id.policy, route: id.route, limit: c.Limit, window: max(1, c.Limit.Window().Microseconds()),
		})
	}
	h.series[number].keys++
	h.series[number].address = h.series[number].address || isAddress(c.Key)
	return number
}

// isAddress reports whether a key has an address.
func isAddress(key string) bool {
	return strings.HasPrefix(key, "ip=") || strings.Contains(key, "|ip=")
}

// routeOf returns the escaped route in a key, "" if there is none.
func routeOf(key string) string {
	_, route, _ := strings.Cut("|"+key, "|rt=")
	return route
}

// count counts a decision on a key.
func (s *series) count(k *key, now int64, d *algorithms.Decision) {
	if s.requests == 0 {
		s.first = now
	}
	s.last = now
	s.requests++
	k.requests++
	s.calls.add(now)
	m := &s.minute
	if at := now / micros / 60 * 60; m.Requests == 0 || at != m.Start.Unix() {
		*m = minute{Start: time.Unix(at, 0).UTC()}
	}
	m.Requests++
	if !d.Allowed {
		s.denied++
		m.Denied++
		if d.RetryAfter != algorithms.Never {
			s.longest = max(s.longest, d.RetryAfter)
		}
		if k.denied++; k.denied == 1 {
			s.deniedKeys++
		}
	}
	if cmp.Or(cmp.Compare(m.Denied, s.worst.Denied), cmp.Compare(m.Requests, s.worst.Requests)) > 0 {
		s.worst = *m
	}
}

// want counts the units of a request of a key, with the units that were charged later.
func (s *series) want(k *key, now, units int64) {
	at := now / s.window
	if k.window != at {
		if k.was = k.now; k.window != at-1 {
			k.was = 0
		}
		k.now, k.window = 0, at
	}
	k.now = uint32(min(int64(k.now)+units, math.MaxUint32))
	k.pair = uint32(max(int64(k.pair), min(int64(k.now)+int64(k.was), math.MaxUint32)))
}
