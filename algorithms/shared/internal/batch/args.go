// The arguments of the Lua script: lua/prelude.lua has the layout.

package batch

import (
	"encoding/binary"
	"math"
	"slices"

	"github.com/redis/go-redis/v9"

	"github.com/penstock-go/penstock/algorithms/internal/step"
)

// A script is the groups of one slot as the Lua script takes them.
type script struct {
	groups  []*Group     // once packed, in the order of the answers
	tallies []keyTally   // of the first keys, one each
	calls   []*Group     // of several takes, each alone on its key
	rest    []*Group     // other groups
	keys    []scriptText // distinct
	keyText []byte       // of all keys
	index   map[string]uint16
	limits  []step.Limit // distinct
	general bool         // a limit is no bucket: the general case of the script decides
	packed  []byte       // limits
	takes   []byte
	checks  []byte
	around  int64 // µs: the instant around which calendars have their turns
	now     int64 // µs: of the decisions; 0: the server's
	args    []any
	name    scriptName // an argument
	refused bool       // and was sent again
	cmd     *redis.Cmd
}

// A scriptText is an argument that needs no allocation, because a pointer to it
// becomes an any. Go-redis writes the result of MarshalBinary; hooks that trace
// commands show the result of String.
type scriptText struct{ text []byte }

// MarshalBinary implements [encoding.BinaryMarshaler].
func (t *scriptText) MarshalBinary() ([]byte, error) { return t.text, nil }

func (t *scriptText) String() string { return string(t.text) }

// A keyTally is the groups that are one take each, all of the same cost from one
// key under one limit.
type keyTally struct {
	limit, times uint16
	cost         int64
	first, last  *Group // linked by their next
}

// reset empties s, and keeps its buffers.
func (s *script) reset() {
	clear(s.index)
	*s = script{
		groups: s.groups[:0], tallies: s.tallies[:0], calls: s.calls[:0], rest: s.rest[:0],
		keys: s.keys[:0], keyText: s.keyText[:0], index: s.index, limits: s.limits[:0],
		packed: s.packed[:0], takes: s.takes[:0], checks: s.checks[:0], args: s.args[:0],
	}
}

// pack writes the arguments of the script. Takes that are alone on their keys come
// first, because they are most checks. around is this process's clock.
func (s *script) pack(around int64) {
	s.around = around
	s.rest = slices.DeleteFunc(append(s.rest, s.groups...), s.addToTally)
	s.rest = slices.DeleteFunc(s.rest, s.addToCalls)
	s.groups = s.groups[:0]
	for i := range s.tallies {
		for g := s.tallies[i].first; g != nil; g = g.next {
			s.groups = append(s.groups, g)
		}
	}
	s.groups = append(append(s.groups, s.calls...), s.rest...)
	s.packTakes()
	if len(s.rest) > 0 {
		s.checks = binary.LittleEndian.AppendUint16(s.checks, uint16(len(s.keys)))
	}
	for _, g := range s.rest {
		s.packGroup(g)
	}
}

// addToTally adds a group to the tally of its key, and reports whether it did:
// only a lone take whose key has no other tally can be in a tally.
func (s *script) addToTally(g *Group) bool {
	it := g.Items[0]
	if len(g.Items) > 1 || it.Op != step.Take || g.Denied > 0 || !it.Limit.Row.Counted {
		return false
	}
	limit, i := s.limitIndex(it), int(s.keyIndex(it.Stored))-1
	if i == len(s.tallies) {
		s.tallies = append(s.tallies, keyTally{limit: limit, times: 1, cost: it.Cost, first: g, last: g})
		return true
	}
	t := &s.tallies[i]
	if t.limit != limit || t.cost != it.Cost {
		return false
	}
	t.last.next, t.last = g, g
	t.times++
	return true
}

// addToCalls adds a group of several takes, and reports whether it did: each must
// have a key that the script does not use yet.
func (s *script) addToCalls(g *Group) bool {
	if len(g.Items) < 2 || g.Denied > 0 {
		return false
	}
	for i, it := range g.Items {
		if it.Op != step.Take || !it.Limit.Row.Counted || it.Home != &g.Items[i].Item {
			return false
		}
		if _, used := s.index[it.Stored]; used {
			return false
		}
	}
	for _, it := range g.Items {
		s.keyIndex(it.Stored)
	}
	s.calls = append(s.calls, g)
	return true
}

// packTakes writes the tallies and the calls. Equal neighbours share one entry.
func (s *script) packTakes() {
	for i := 0; i < len(s.tallies); {
		t := &s.tallies[i]
		n := alike(s.tallies[i:], func(other *keyTally) bool {
			return t.times == other.times && t.limit == other.limit && t.cost == other.cost
		})
		s.packTake(n, t.times, t.limit, t.cost)
		i += n
	}
	for i := 0; i < len(s.calls); {
		first := s.calls[i].Items
		n := alike(s.calls[i:], func(other **Group) bool {
			return slices.EqualFunc(first, (*other).Items, func(a, b *Item) bool { return a.Cost == b.Cost && a.Limit == b.Limit })
		})
		s.packTake(n, 0, uint16(len(first)), 0)
		for _, it := range first {
			s.takes = binary.LittleEndian.AppendUint16(s.takes, s.limitIndex(it))
			s.takes = appendDoubles(s.takes, it.Cost)
		}
		i += n
	}
}

// alike returns how many elements of rest, from the first on, are like the first.
func alike[T any](rest []T, like func(*T) bool) (n int) {
	for n = 1; n < len(rest) && like(&rest[n]); n++ {
	}
	return n
}

func (s *script) packTake(alike int, times, limit uint16, cost int64) {
	s.takes = binary.LittleEndian.AppendUint16(s.takes, uint16(alike))
	s.takes = binary.LittleEndian.AppendUint16(s.takes, times)
	s.takes = binary.LittleEndian.AppendUint16(s.takes, limit)
	s.takes = appendDoubles(s.takes, cost)
}

func (s *script) packGroup(g *Group) {
	le := binary.LittleEndian
	s.checks = le.AppendUint16(s.checks, uint16(len(g.Items)))
	s.checks = le.AppendUint16(s.checks, uint16(g.Denied))
	for _, it := range g.Items {
		op := it.Op
		if it.Denies {
			op = step.Take
		}
		s.checks = append(s.checks, byte(op))
		s.checks = le.AppendUint16(s.checks, s.keyIndex(it.Stored))
		s.checks = le.AppendUint16(s.checks, s.limitIndex(it))
		s.checks = appendDoubles(s.checks, it.Cost)
		switch it.Op {
		case step.TrialInstead, step.TakeReserved, step.TakeElse:
			s.checks = le.AppendUint16(s.checks, it.Place)
		case step.Return, step.Renew:
			s.checks = appendDoubles(s.checks, it.Receipt.T, it.Receipt.N, it.Receipt.F)
		}
		if it.Limit.Row.TakesApart {
			s.packID(it)
		}
	}
}

// packID writes the id of a take: a new id, or the id of the take that a
// settlement is about.
func (s *script) packID(it *Item) {
	id, last := it.ID, int64(0)
	if it.Op.Reads() {
		id, last = it.Receipt.ID, it.Receipt.Last
	}
	s.checks = appendDoubles(s.checks, id)
	s.checks = binary.LittleEndian.AppendUint32(s.checks, uint32(last))
}

// keyIndex returns the place of a key among the script's, from 1.
func (s *script) keyIndex(key string) uint16 {
	if i, ok := s.index[key]; ok {
		return i
	}
	if s.index == nil {
		s.index = make(map[string]uint16)
	}
	begin := len(s.keyText)
	s.keyText = append(s.keyText, key...)
	s.keys = append(s.keys, scriptText{s.keyText[begin:]})
	s.index[key] = uint16(len(s.keys))
	return uint16(len(s.keys))
}

// limitIndex returns the place of an item's limit among the script's, from 1. Batches
// have few different limits, so they are compared one by one.
func (s *script) limitIndex(it *Item) uint16 {
	l := &it.Limit
	if i := slices.Index(s.limits, *l); i >= 0 {
		return uint16(i + 1)
	}
	s.limits = append(s.limits, *l)
	s.general = s.general || !l.Bucket()
	s.packed = append(s.packed, l.Row.Tag...)
	s.packed = appendDoubles(s.packed, l.R, l.W, l.Burst, l.Cap, l.Window)
	var turns []int64
	if l.Calendar != nil {
		// The turns around this process's clock. The script decides by its own clock
		// which of them have come.
		turns = l.Calendar.Around(s.around)[:]
	}
	s.packed = append(s.packed, byte(len(turns)))
	s.packed = appendDoubles(s.packed, turns...)
	return uint16(len(s.limits))
}

// appendDoubles appends integers below 2^53 as Lua's numbers.
func appendDoubles(dst []byte, values ...int64) []byte {
	for _, v := range values {
		dst = binary.LittleEndian.AppendUint64(dst, math.Float64bits(float64(v)))
	}
	return dst
}
