// The script of the model: lua/prelude.lua has the layout of its arguments and of
// its reply.

package fleet

import (
	"encoding/binary"
	"math"

	"github.com/penstock-go/penstock/algorithms/internal/step"
)

// A script is one run of the script.
type script struct {
	server *server
	now    int64 // µs
	keys   []string
	limits []step.Limit
	reply  []byte
}

// decide decides all checks. argv is the limits, the lone takes, the clock of the
// caller, and the groups; the last two may be missing.
func (s *script) decide(argv []string) {
	s.readLimits(argv[0])
	s.write(s.now)
	if len(argv) > 2 && argv[2] != "0" {
		panic("the model has no clocks of callers")
	}
	s.takes(argv[1])
	if len(argv) > 3 {
		s.groups(argv[3])
	}
}

func (s *script) readLimits(text string) {
	rows := make(map[string]*step.Row)
	for _, row := range step.Rows {
		rows[row.Tag] = row
	}
	for p := packed(text); p != ""; {
		l := step.Limit{Row: rows[string(p[:2])]}
		p = p[2:]
		for _, field := range []*int64{&l.R, &l.W, &l.Burst, &l.Cap, &l.Window} {
			*field = p.double()
		}
		if p.byte() != 0 {
			panic("the model has no calendars")
		}
		l.Scope, l.A, l.B, l.Most, l.Requests = l.Row, l.W/l.R, l.W%l.R, l.Burst, l.Burst
		s.limits = append(s.limits, l)
	}
}

// takes decides takes that are alone on their keys.
func (s *script) takes(text string) {
	key := 0
	for p := packed(text); p != ""; {
		alike, times, limit, cost := p.short(), p.short(), p.short(), p.double()
		if times > 0 {
			for range alike {
				for range times {
					s.lone(s.keys[key], &s.limits[limit-1], cost)
				}
				key++
			}
			continue
		}
		limits, costs := make([]int, limit), make([]int64, limit) // the field has the number of takes
		for i := range limits {
			limits[i], costs[i] = p.short(), p.double()
		}
		for range alike {
			items := make([]step.Item, len(limits))
			for i := range items {
				items[i] = s.item(step.Take, key+1, limits[i], costs[i])
				key++
			}
			s.call(items)
		}
	}
}

// lone decides a take that is alone in its call.
func (s *script) lone(key string, l *step.Limit, cost int64) {
	var t step.Lone
	before, exists := s.server.states[key]
	var state step.State
	if exists {
		state = before.state
	}
	t.Take(state, s.now, cost, l)
	if t.Dirty {
		s.save(key, t.State, l)
	}
	if t.Charged {
		s.server.charged(key, cost)
	}
	s.answer(&step.Answer{Allowed: t.Allowed, Charged: t.Charged, Missing: !exists, T: t.State.T, N: t.State.N, F: t.State.F}, l)
}

// groups decides groups of other checks.
func (s *script) groups(text string) {
	p := packed(text)
	p.short()
	for p != "" {
		items := make([]step.Item, p.short())
		if p.short() > 0 {
			panic("the model has no slots")
		}
		for i := range items {
			op := step.Op(p.byte())
			items[i] = s.item(op, p.short(), p.short(), p.double())
			it := &items[i]
			if op == step.TrialInstead || op.Depends() {
				p.short() // the place of a take: step.Call finds it
			}
			it.Op = it.Asked()
			if r := &it.Receipt; op.Reads() {
				*r = step.Receipt{Units: it.Cost, T: p.double(), N: p.double(), F: p.double(), Row: it.Limit.Row}
			}
			if it.Limit.Row.TakesApart {
				it.ID = p.double()
				it.Receipt.ID, it.Receipt.Last = it.ID, p.long()
			}
		}
		s.call(items)
	}
}

// item returns a check. Keys and limits are numbered from 1.
func (s *script) item(op step.Op, key, limit int, cost int64) step.Item {
	l := s.limits[limit-1]
	return step.Item{Op: op, Key: step.Key{Text: s.keys[key-1], Scope: l.Row}, Limit: l, Cost: cost}
}

// call decides checks, all or nothing.
func (s *script) call(items []step.Item) {
	var c step.Call
	for i := range items {
		it := &items[i]
		if err := c.Add(it); err != nil {
			panic(err)
		}
		if before, exists := s.server.states[it.Key.Text]; exists && it.Home == it {
			it.Held = step.Held{State: before.state, Exists: true}
		}
	}
	before := make([]int64, len(items))
	for i := range items {
		before[i] = s.used(&items[i])
	}
	c.Decide(s.now, func(*step.Item) bool { return true })
	for i := range items {
		it := &items[i]
		if it.Home == it {
			if units := s.used(it) - before[i]; units != 0 {
				s.server.charged(it.Key.Text, units)
			}
			if it.Held.Dirty {
				s.save(it.Key.Text, it.Held.State, &it.Limit)
			}
		}
		s.answer(&it.Answer, &it.Limit)
	}
}

// used returns the units in use of an item's key.
func (s *script) used(it *step.Item) int64 {
	held, l := &it.Home.Held, &it.Limit
	state := l.At(held.State, s.now)
	if !l.Row.Counted { // At has changed the list of units, so the sum beside it must be stored too
		held.State, held.Dirty = state, true
	}
	return l.Used(state)
}

func (s *script) save(key string, state step.State, l *step.Limit) {
	state = l.At(state, s.now)
	if state.Empty() {
		delete(s.server.states, key)
		return
	}
	s.server.states[key] = &stored{state, l.FullAt(state)}
}

// answer writes an answer.
func (s *script) answer(a *step.Answer, l *step.Limit) {
	v := a.N * 32
	for i, flag := range [...]bool{a.Allowed, a.Missing, a.Charged, !l.Row.Counted, a.F != 0} {
		if flag {
			v += 1 << i
		}
	}
	s.write(v, a.T)
	if !l.Row.Counted {
		s.write(a.RetryAt, a.UnitAt)
	}
	if a.F != 0 {
		s.write(a.F)
	}
}

func (s *script) write(doubles ...int64) {
	for _, v := range doubles {
		s.reply = binary.LittleEndian.AppendUint64(s.reply, math.Float64bits(float64(v)))
	}
}

// packed is what is left of an argument.
type packed string

func (p *packed) cut(n int) []byte {
	text := []byte((*p)[:n])
	*p = (*p)[n:]
	return text
}

func (p *packed) byte() byte  { return p.cut(1)[0] }
func (p *packed) short() int  { return int(binary.LittleEndian.Uint16(p.cut(2))) }
func (p *packed) long() int64 { return int64(binary.LittleEndian.Uint32(p.cut(4))) }
func (p *packed) double() int64 {
	return int64(math.Float64frombits(binary.LittleEndian.Uint64(p.cut(8))))
}
