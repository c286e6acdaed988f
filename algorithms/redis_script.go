package algorithms

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strconv"

	"github.com/redis/go-redis/v9"

	"github.com/penstock-go/penstock/lua"
)

// A script is the items of one part of a call, as the Lua script takes them:
// see lua/prelude.lua for the layout.
type script struct {
	items  []*redisItem
	keys   []any // distinct
	limits []byte
	checks []byte
	now    string
}

const elsewhereDenied = math.MaxUint16

var scriptSource = lua.Source()

func newScript(c *call, part int) *script {
	s := &script{}
	var limits []Limit
	index := make(map[int]int) // of a home's key, from 1
	takes := make(map[int]int) // of a take in the group, from 1
	s.checks = binary.LittleEndian.AppendUint16(s.checks, 0)
	s.checks = binary.LittleEndian.AppendUint16(s.checks, uint16(c.deniedOutside(part)))
	for i := range c.items {
		it := &c.items[i]
		if it.part != part {
			continue
		}
		s.items = append(s.items, it)
		takes[i] = len(s.items)
		if index[it.home] == 0 {
			s.keys = append(s.keys, it.key)
			index[it.home] = len(s.keys)
		}
		var limit int
		limits, limit = s.addLimit(limits, it)
		s.addCheck(c, it, index[it.home], limit, takes)
	}
	binary.LittleEndian.PutUint16(s.checks, uint16(len(s.items)))
	return s
}

// addLimit returns limits with the item's among them, and its place, from 1.
func (s *script) addLimit(limits []Limit, it *redisItem) ([]Limit, int) {
	for i, l := range limits {
		if l == it.check.Limit {
			return limits, i + 1
		}
	}
	t := &it.terms
	s.limits = append(s.limits, byte(it.algo-algorithmTokenBucket+1))
	for _, v := range [...]int64{t.r, t.w, t.a, t.b, t.burst, t.cap, t.window} {
		s.limits = appendDouble(s.limits, v)
	}
	return append(limits, it.check.Limit), len(limits) + 1
}

func (s *script) addCheck(c *call, it *redisItem, key, limit int, takes map[int]int) {
	le := binary.LittleEndian
	s.checks = append(s.checks, byte(it.op))
	s.checks = le.AppendUint16(s.checks, uint16(key))
	s.checks = le.AppendUint16(s.checks, uint16(limit))
	s.checks = le.AppendUint32(s.checks, uint32(it.cost))
	switch it.op {
	case TrialInstead:
		instead := takes[it.instead]
		if instead == 0 && !c.items[it.instead].answer.allowed {
			instead = elsewhereDenied
		}
		s.checks = le.AppendUint16(s.checks, uint16(instead))
	case Return:
		s.checks = appendDouble(s.checks, it.receipt.t)
		s.checks = le.AppendUint32(s.checks, uint32(it.receipt.n))
		s.checks = appendDouble(s.checks, it.receipt.f)
	}
}

// appendDouble appends an integer below 2^53 as Lua's number.
func appendDouble(dst []byte, v int64) []byte {
	return binary.LittleEndian.AppendUint64(dst, math.Float64bits(float64(v)))
}

// once keeps go-redis from sending a command again after a failure in which it
// may have been executed.
type once struct{ *redis.Cmd }

func (once) NoRetry() bool { return true }

// evaluate runs the script by its digest, and sends it whole if Redis does not
// know it.
func (r *Redis) evaluate(ctx context.Context, s *script) ([]any, error) {
	if r.now != nil {
		now, err := clock(r.now())
		if err != nil {
			return nil, err
		}
		s.now = strconv.FormatInt(now, 10)
	}
	reply, err := r.send(ctx, s, "evalsha", lua.Digest)
	if err != nil && redis.HasErrorPrefix(err, "NOSCRIPT") {
		r.stats.loads.Add(1)
		r.observe(Event{Kind: EventScriptLoaded})
		reply, err = r.send(ctx, s, "eval", scriptSource)
	}
	return reply, err
}

func (r *Redis) send(ctx context.Context, s *script, name, what string) ([]any, error) {
	r.stats.scripts.Add(1)
	args := make([]any, 0, len(s.keys)+6)
	args = append(args, name, what, len(s.keys))
	args = append(args, s.keys...)
	args = append(args, s.now, s.limits, s.checks)
	cmd := redis.NewCmd(ctx, args...)
	cmd.SetFirstKeyPos(3)
	if err := r.client.Process(ctx, once{cmd}); err != nil {
		return nil, err
	}
	return cmd.Slice()
}

var errReply = errors.New("the reply is not the script's: is something between us and Redis, or another script under its digest?")

const answerSize = 1 + 4 + 3*8

// read takes the script's reply apart into the items' answers.
func (s *script) read(reply []any) error {
	if len(reply) == 0 {
		return errReply
	}
	data, ok := reply[0].(string)
	if !ok || len(data) < 9 {
		return errReply
	}
	now, status, data := double(data), data[8], data[9:]
	if status != 0 {
		if len(reply) < 2 {
			return errReply
		}
		return fmt.Errorf("a stored key is not a limiter's: %v", reply[1])
	}
	if len(data) != len(s.items)*answerSize {
		return errReply
	}
	for i, it := range s.items {
		it.now = now
		it.answer = readAnswer(data[i*answerSize:])
	}
	return nil
}

func readAnswer(data string) answer {
	flags := data[0]
	return answer{
		allowed: flags&1 != 0,
		missing: flags&2 != 0,
		charged: flags&4 != 0,
		n:       int64(binary.LittleEndian.Uint32([]byte(data[1:5]))),
		t:       double(data[5:]),
		f:       double(data[13:]),
		u:       double(data[21:]),
	}
}

func double(data string) int64 {
	return int64(math.Float64frombits(binary.LittleEndian.Uint64([]byte(data[:8]))))
}
