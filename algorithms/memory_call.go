package algorithms

import (
	"math/bits"
	"sync"
)

// A workspace is what a call of several checks works on. It is pooled, since
// what steps are called with through their interface would be allocated
// otherwise.
type workspace struct {
	items  [4]item
	places [4]place
}

var workspaces = sync.Pool{New: func() any { return new(workspace) }}

// release forgets what belongs to the caller of n checks.
func (w *workspace) release(n int) {
	n = min(n, len(w.items))
	clear(w.items[:n])
	clear(w.places[:n])
	workspaces.Put(w)
}

// A place is where a check's key is held.
type place struct {
	name   name
	hash   uint64
	record *record // nil if there is none
}

// A shard is selected by the low half of a hash, and a chain in it by the high
// half.
func (m *Memory) shard(hash uint64) *shard { return &m.shards[m.shardIndex(hash)] }

func (m *Memory) shardIndex(hash uint64) int { return int(hash) & (len(m.shards) - 1) }

func chainHash(hash uint64) uint32 { return uint32(hash >> 32) }

// places finds the shard of every item, and lets items with one key share it.
func (m *Memory) places(places []place, items []item) ([]place, error) {
	for i := range items {
		p := place{name: nameOf(items[i].check)}
		p.hash = p.name.hash(m.seed)
		places = append(places, p)
		err := share(items, i, func(j int) bool {
			return places[j].hash == p.hash && places[j].name == p.name
		})
		if err != nil {
			return nil, err
		}
	}
	return places, nil
}

// lock locks the shards of all places, in the one order that keeps calls from
// waiting for each other in a circle, and returns their set.
func (m *Memory) lock(places []place) (set uint64) {
	for i := range places {
		set |= 1 << m.shardIndex(places[i].hash)
	}
	for s := set; s != 0; s &= s - 1 {
		m.shards[bits.TrailingZeros64(s)].mu.Lock()
	}
	return set
}

func (m *Memory) unlock(set uint64) {
	for s := set; s != 0; s &= s - 1 {
		m.shards[bits.TrailingZeros64(s)].mu.Unlock()
	}
}

// call decides any call: of several checks, or of settlements.
func (m *Memory) call(checks []Check, now int64) error {
	room := workspaces.Get().(*workspace)
	defer room.release(len(checks))
	items, err := newItems(room.items[:], checks, Local)
	if err != nil {
		return err
	}
	places, err := m.places(room.places[:0], items)
	if err != nil {
		return err
	}
	m.decide(items, places, now)
	for i := range items {
		checks[i].Decision = items[i].decision(now, Local)
	}
	return nil
}

// decide loads the states of items, decides the call, and stores what changed.
func (m *Memory) decide(items []item, places []place, now int64) {
	defer m.unlock(m.lock(places))
	for i := range items {
		m.load(&items[i], &places[i], i)
	}
	if items[0].op.settles() {
		for i := range items {
			if !items[i].adds() || m.room(items, places, i, now) {
				items[i].settle(items, now)
			}
		}
	} else {
		denied := judge(items, now)
		for i := range items {
			if denied == 0 && items[i].op == Take && !m.room(items, places, i, now) {
				denied++
			}
		}
		charge(items, now, denied, func(i int) bool { return m.room(items, places, i, now) })
	}
	m.store(items, places, now)
}

// load requires the shard's mu.
func (m *Memory) load(it *item, p *place, i int) {
	if it.home != i || table[it.algo].step == nil {
		return
	}
	if p.record = m.shard(p.hash).records.find(chainHash(p.hash), p.name); p.record != nil {
		it.exists = true
		it.stored = p.record.state()
	}
}

// room makes sure that what item i charges can be stored, by reserving a
// record for a new key; it refuses the item if there is none. It requires the
// shards' mu.
func (m *Memory) room(items []item, places []place, i int, now int64) bool {
	it, home := &items[i], &places[items[i].home]
	if home.record != nil || it.cost == 0 || table[it.algo].step == nil {
		return true
	}
	home.record = m.shard(home.hash).reserve(chainHash(home.hash), home.name, now, places)
	if home.record != nil {
		return true
	}
	m.tellRefused(it.check)
	it.refused, it.answer.allowed = true, false
	return false
}

// tellRefused tells the observer that there is no room for c's key.
func (m *Memory) tellRefused(c *Check) {
	if m.observe != nil {
		m.observe(Event{Kind: EventCapacity, Policy: c.Policy})
	}
}

// store writes back what the call changed. It requires the shards' mu.
func (m *Memory) store(items []item, places []place, now int64) {
	for i := range items {
		it, home, r := &items[i], &items[items[i].home], places[items[i].home].record
		if r == nil {
			continue
		}
		if home.dirty && !home.stored.empty() {
			full := table[it.algo].step.resetAt(answerOf(home.stored), &it.terms)
			if home != it { // several limits on one key: the last to be full
				full = max(full, r.fullAt)
			}
			r.put(home.stored, full)
		}
		if it.op == Take && !it.answer.allowed {
			r.deniedAt = now
		}
	}
	for i := range items {
		it, p := &items[i], &places[i]
		if p.record == nil {
			continue
		}
		if it.dirty && it.stored.empty() || !it.dirty && !it.exists {
			m.shard(p.hash).records.remove(p.record)
		}
	}
}
