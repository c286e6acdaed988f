// What the report counts: series, their keys, and the decisions on them.

package replay

import (
	"math"
	"strings"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	ratelimit "github.com/penstock-go/penstock/middleware"
)

// A series is one limit of a policy: a policy has a series for each plan, and for each
// route if its key contains the route.
type series struct {
	policy string
	route  string // "": the key has none
	limit  algorithms.Limit
	keys   int // distinct
	denied int // of them
	tally  tally
	minute map[int64]int64 // requests, by minutes since 1970

	window  int64 // µs
	at      int64 // the number of the present window
	inIt    int   // keys that were asked in it
	most    int   // keys in one window
	calls   peak
	top     keyID  // with the most requests
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

// A tally counts the decisions of a series under one limit.
type tally struct {
	requests, denied int64
	longest          time.Duration
	minute           map[int64]int64 // denials, by minutes since 1970
}

const minute = 60 * micros

// deny counts a denial of a request that is counted elsewhere.
func (t *tally) deny(now int64, d *algorithms.Decision) {
	t.denied++
	if t.minute == nil {
		t.minute = make(map[int64]int64)
	}
	t.minute[now/minute]++
	if d.RetryAfter != algorithms.Never {
		t.longest = max(t.longest, d.RetryAfter)
	}
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
	peak     uint32 // the most units in one window
	pair     uint32 // the most units in two windows, one after the other
	lo, hi   int64  // the highest limit that denies it, and the lowest that does not, so far
	window   int64  // the number of the present window
}

// A history has the series and the keys of the engine's decisions.
type history struct {
	policies map[string]*family // by their names
	series   []*series
	keys     chunks
}

// A family has the keys of one policy, and their series.
type family struct {
	policy *ratelimit.Policy // also of a candidate
	ids    map[string]keyID
	series map[seriesID]uint32
}

type seriesID struct {
	route string
	limit algorithms.Limit
}

// chunks are keys that never move: a slice would be copied whenever it grows.
type chunks struct {
	all [][]key
	n   keyID
}

const chunk = 4096

func (c *chunks) at(id keyID) *key { return &c.all[id/chunk][id%chunk] }

func (c *chunks) add(k key) keyID {
	if int(c.n/chunk) == len(c.all) {
		c.all = append(c.all, make([]key, chunk))
	}
	*c.at(c.n) = k
	c.n++
	return c.n - 1
}

func newHistory() *history { return &history{policies: make(map[string]*family)} }

// record counts an answered check with its verdict, and returns its policy, one of those by their names.
func (h *history) record(now int64, c *algorithms.Check, d *algorithms.Decision, policies map[string]*ratelimit.Policy) (*ratelimit.Policy, keyID) {
	s := h.policies[c.Policy]
	if s == nil {
		name, _, _ := strings.Cut(c.Policy, "~")
		policy := policies[name]
		if policy == nil { // of a Middleware that has wrapped no handler
			policy = &ratelimit.Policy{Name: strings.Clone(name)}
		}
		s = &family{policy, make(map[string]keyID), make(map[seriesID]uint32)}
		h.policies[strings.Clone(c.Policy)] = s
	}
	id, known := s.ids[c.Key]
	if !known {
		text := strings.Clone(c.Key)
		id = h.keys.add(key{text: text, series: h.find(s, c), window: math.MinInt64, hi: math.MaxInt64})
		s.ids[text] = id
	}
	k := h.keys.at(id)
	h.series[k.series].count(k, now, d)
	return s.policy, id
}

// find returns the series of a new key.
func (h *history) find(s *family, c *algorithms.Check) uint32 {
	id := seriesID{routeOf(c.Key), c.Limit}
	number, ok := s.series[id]
	if !ok {
		number = uint32(len(h.series))
		id.route = strings.Clone(id.route)
		s.series[id] = number
		h.series = append(h.series, &series{
			policy: strings.Clone(c.Policy), route: id.route, limit: c.Limit,
			window: max(1, c.Limit.Window().Microseconds()), minute: make(map[int64]int64),
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
	if at := strings.LastIndex(key, "|rt="); at >= 0 {
		return key[at+len("|rt="):]
	}
	route, _ := strings.CutPrefix(key, "rt=")
	if len(route) == len(key) {
		return ""
	}
	return route
}

// count counts a decision on a key.
func (s *series) count(k *key, now int64, d *algorithms.Decision) {
	if s.tally.requests == 0 {
		s.first = now
	}
	s.last = now
	s.tally.requests++
	s.minute[now/minute]++
	k.requests++
	if !d.Allowed {
		s.tally.deny(now, d)
		if k.denied++; k.denied == 1 {
			s.denied++
		}
	}
	s.calls.add(now)
}

// want counts the units of a request of a key, with the units that were charged later.
func (s *series) want(k *key, now, units int64) {
	at := now / s.window
	if at != s.at {
		s.at, s.inIt = at, 0
	}
	if k.window != at {
		if k.was = k.now; k.window != at-1 {
			k.was = 0
		}
		k.now, k.window = 0, at
		s.inIt++
		s.most = max(s.most, s.inIt)
	}
	k.now = uint32(min(int64(k.now)+units, math.MaxUint32))
	k.peak = max(k.peak, k.now)
	k.pair = uint32(max(int64(k.pair), min(int64(k.now)+int64(k.was), math.MaxUint32)))
}
