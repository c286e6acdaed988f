package algorithms

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"
)

// A script is groups as the Lua script takes them; lua/prelude.lua has the
// layout.
type script struct {
	groups  []*group // once packed, in the order of the answers
	tallies []tally  // of the first keys, one each
	rest    []*group // what is in no tally
	keys    []string // distinct
	index   map[string]uint16
	limits  []Limit // distinct
	packed  []byte  // limits
	takes   []byte
	checks  []byte
	args    []any
	name    scriptName // an argument
	cmd     *redis.Cmd
	sent    bool // and not to be sent once more
	clock   func() time.Time
}

// A tally is the groups that are one take each, all of the same cost from the
// same bucket.
type tally struct {
	limit       uint16
	times       uint16
	cost        uint32
	first, last *group // linked by their next
}

// checkSize is about what a check adds to a script, beside its key.
const checkSize = 29

// reset empties s, but keeps its buffers.
func (s *script) reset() {
	clear(s.groups)
	clear(s.tallies)
	clear(s.rest)
	clear(s.keys)
	clear(s.index)
	clear(s.args)
	*s = script{
		groups: s.groups[:0], tallies: s.tallies[:0], rest: s.rest[:0],
		keys: s.keys[:0], index: s.index, limits: s.limits[:0],
		packed: s.packed[:0], takes: s.takes[:0], checks: s.checks[:0], args: s.args[:0],
	}
}

// pack writes the arguments of the script. Most groups are one take from a
// bucket: these come first.
//
// Limits of calendars are sent with the turns around this process's clock; which
// of them have come, the script decides by its own.
func (s *script) pack(clock func() time.Time) {
	s.clock = clock
	for _, g := range s.groups {
		if !s.count(g) {
			s.rest = append(s.rest, g)
		}
	}
	s.groups = s.groups[:0]
	for i := range s.tallies {
		for g := s.tallies[i].first; g != nil; g = g.next {
			s.groups = append(s.groups, g)
		}
	}
	s.groups = append(s.groups, s.rest...)
	s.packTallies()
	for _, g := range s.rest {
		s.packGroup(g)
	}
}

// count adds a group to the tally of its key, unless it is not for tallies.
func (s *script) count(g *group) bool {
	it := g.items[0]
	if len(g.items) > 1 || it.op != Take || g.denied > 0 || !it.bucket() {
		return false
	}
	limit, i := s.limitIndex(it), int(s.keyIndex(it.key))-1
	if i == len(s.tallies) {
		s.tallies = append(s.tallies, tally{limit: limit, times: 1, cost: uint32(it.cost), first: g, last: g})
		return true
	}
	t := &s.tallies[i]
	if t.limit != limit || t.cost != uint32(it.cost) {
		return false
	}
	t.last.next, t.last = g, g
	t.times++
	return true
}

func (it *item) bucket() bool {
	return it.algo == algorithmTokenBucket || it.algo == algorithmLeakyBucket
}

// packTallies writes the tallies; neighbours that are alike share what they say.
func (s *script) packTallies() {
	if len(s.tallies) == 0 {
		return
	}
	le := binary.LittleEndian
	s.takes = le.AppendUint16(s.takes, uint16(len(s.tallies)))
	for rest := s.tallies; len(rest) > 0; {
		t, alike := &rest[0], 1
		for alike < len(rest) && t.like(&rest[alike]) {
			alike++
		}
		s.takes = le.AppendUint16(s.takes, uint16(alike))
		s.takes = le.AppendUint16(s.takes, t.times)
		s.takes = le.AppendUint16(s.takes, t.limit)
		s.takes = le.AppendUint32(s.takes, t.cost)
		rest = rest[alike:]
	}
}

func (t *tally) like(other *tally) bool {
	return t.times == other.times && t.limit == other.limit && t.cost == other.cost
}

func (s *script) packGroup(g *group) {
	le := binary.LittleEndian
	s.checks = le.AppendUint16(s.checks, uint16(len(g.items)))
	s.checks = le.AppendUint16(s.checks, uint16(g.denied))
	for _, it := range g.items {
		s.checks = append(s.checks, byte(it.op))
		s.checks = le.AppendUint16(s.checks, s.keyIndex(it.key))
		s.checks = le.AppendUint16(s.checks, s.limitIndex(it))
		s.checks = le.AppendUint32(s.checks, uint32(it.cost))
		switch it.op {
		case TrialInstead:
			s.checks = le.AppendUint16(s.checks, it.except)
		case Return, Renew, backfill:
			s.checks = appendDouble(s.checks, it.receipt.t)
			s.checks = le.AppendUint32(s.checks, uint32(it.receipt.n))
			s.checks = appendDouble(s.checks, it.receipt.f)
			s.checks = appendDouble(s.checks, it.receipt.at)
		}
		if it.algo.Concurrent() {
			s.checks = appendDouble(s.checks, it.id)
		}
	}
}

// keyIndex returns the place of a key among the script's, from 1.
func (s *script) keyIndex(key string) uint16 {
	if i, ok := s.index[key]; ok {
		return i
	}
	if s.index == nil {
		s.index = make(map[string]uint16)
	}
	s.keys = append(s.keys, key)
	s.index[key] = uint16(len(s.keys))
	return uint16(len(s.keys))
}

// limitIndex returns the place of an item's limit among the script's, from 1.
// Batches have few different limits.
func (s *script) limitIndex(it *redisItem) uint16 {
	if i := slices.Index(s.limits, it.limit); i >= 0 {
		return uint16(i + 1)
	}
	s.limits = append(s.limits, it.limit)
	t := &it.terms
	s.packed = append(s.packed, byte(it.algo-algorithmTokenBucket+1))
	numbers := [...]int64{t.r, t.w, t.a, t.b, t.burst, t.cap, t.window}
	if t.calendar != nil { // in the place of those that no window needs
		at := t.calendar.around(s.clock().UnixMicro())
		copy(numbers[:4], at[:])
		numbers[6] = at[4]
	}
	for _, v := range numbers {
		s.packed = appendDouble(s.packed, v)
	}
	return uint16(len(s.limits))
}

// appendDouble appends an integer below 2^53 as Lua's number.
func appendDouble(dst []byte, v int64) []byte {
	return binary.LittleEndian.AppendUint64(dst, math.Float64bits(float64(v)))
}

// fail ends the groups of the script with one error.
func (s *script) fail(err error) {
	for _, g := range s.groups {
		g.err = err
	}
}

var errReply = errors.New("the reply is not the script's: is something between us and Redis?")

// read gives every group its part of the script's reply. If that cannot be
// read, it returns an error, and no group has an answer.
func (s *script) read(reply []any) error {
	now, data, err := s.header(reply)
	if err != nil {
		return err
	}
	failures := reply[1:]
	for _, g := range s.groups {
		status := data[0]
		data = data[1:]
		if status != 0 {
			g.err = fmt.Errorf("%w: %w", errStoredKey, scriptError(fmt.Sprint(failures[0])))
			failures = failures[1:]
			continue
		}
		for _, it := range g.items {
			it.now, it.answer = now, readAnswer(data)
			data = data[answerSize:]
		}
	}
	return nil
}

const answerSize = 1 + 4 + 3*8

// header returns the clock of a reply and the answers, once it has made sure
// that there is one for every check.
func (s *script) header(reply []any) (now int64, answers string, err error) {
	if len(reply) == 0 {
		return 0, "", errReply
	}
	data, ok := reply[0].(string)
	if !ok || len(data) < 8 {
		return 0, "", errReply
	}
	now, data = double(data), data[8:]
	rest, failed := data, 0
	for _, g := range s.groups {
		if len(rest) == 0 {
			return 0, "", errReply
		}
		size := 1 + len(g.items)*answerSize
		if rest[0] != 0 {
			size = 1
			failed++
		}
		if len(rest) < size {
			return 0, "", errReply
		}
		rest = rest[size:]
	}
	if rest != "" || failed != len(reply)-1 {
		return 0, "", errReply
	}
	return now, data, nil
}

func readAnswer(data string) answer {
	flags := data[0]
	return answer{
		allowed: flags&1 != 0,
		missing: flags&2 != 0,
		charged: flags&4 != 0,
		n:       int64(data[1]) | int64(data[2])<<8 | int64(data[3])<<16 | int64(data[4])<<24,
		t:       double(data[5:]),
		f:       double(data[13:]),
		u:       double(data[21:]),
	}
}

func double(data string) int64 {
	var bits uint64
	for i := range 8 {
		bits |= uint64(data[i]) << (8 * i)
	}
	return int64(math.Float64frombits(bits))
}
