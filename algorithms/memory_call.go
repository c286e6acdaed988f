package algorithms

import (
	"hash/maphash"
	"math/bits"
	"sync"
)

// A workspace is what a call of a few checks works on. It is pooled, since what
// steps are called with through their interface would be allocated otherwise.
type workspace struct {
	items  [4]item
	places [4]place
	keys   [256]byte
}

var workspaces = sync.Pool{New: func() any { return new(workspace) }}

// release forgets what belongs to the caller of n checks.
func (w *workspace) release(n int) {
	clear(w.items[:min(n, len(w.items))])
	workspaces.Put(w)
}

// A place is where an item's key is stored.
type place struct {
	key   []byte
	hash  uint64
	shard int
	entry int32 // in the shard, noEntry if there is none
}

// places finds the shard of every item, and lets items with one key share it.
func (m *Memory) places(places []place, keys []byte, items []item) ([]place, error) {
	for i := range items {
		start := len(keys)
		keys = appendStored(keys, items[i].check)
		key := keys[start:len(keys):len(keys)]
		hash := maphash.Bytes(m.seed, key)
		places = append(places, place{key: key, hash: hash, shard: int(hash) & (len(m.shards) - 1)})
		err := share(items, i, func(j int) bool {
			return places[j].hash == hash && string(places[j].key) == string(key)
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
		set |= 1 << places[i].shard
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

// decide loads the states of items, decides the call, and stores what changed.
func (m *Memory) decide(items []item, places []place, now int64) {
	defer m.unlock(m.lock(places))
	for i := range items {
		m.load(&items[i], &places[i], i)
	}
	if items[0].op.settles() {
		for i := range items {
			if items[i].op != Force || m.room(items, places, i, now) {
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
	p.entry = noEntry
	if it.home != i || table[it.algo].step == nil {
		return
	}
	sh := &m.shards[p.shard]
	if e, ok := sh.index[string(p.key)]; ok {
		p.entry = e
		it.exists = true
		it.stored = sh.records[e].state
	}
}

// room makes sure that what item i charges can be stored, by reserving an
// entry for a new key; it refuses the item if there is none. It requires the
// shards' mu.
func (m *Memory) room(items []item, places []place, i int, now int64) bool {
	it, home := &items[i], &places[items[i].home]
	if home.entry != noEntry || it.cost == 0 || table[it.algo].step == nil {
		return true
	}
	sh := &m.shards[home.shard]
	if home.entry = sh.reserve(string(home.key), now, places); home.entry != noEntry {
		return true
	}
	sh.stats.Refused++
	it.refused, it.answer.allowed = true, false
	if m.observe != nil {
		m.observe(Event{Kind: EventCapacity, Policy: it.check.Policy})
	}
	return false
}

// store writes back what the call changed. It requires the shards' mu.
func (m *Memory) store(items []item, places []place, now int64) {
	for i := range items {
		it, home, p := &items[i], &items[items[i].home], &places[items[i].home]
		if p.entry == noEntry {
			continue
		}
		r := &m.shards[p.shard].records[p.entry]
		if home.dirty && !home.stored.empty() {
			full := table[it.algo].step.resetAt(answerOf(home.stored), &it.terms)
			if home != it { // several limits on one key: the last to be full
				full = max(full, r.fullAt)
			}
			r.state, r.fullAt = home.stored, full
		}
		if it.op == Take && !it.answer.allowed {
			r.deniedAt = now
		}
	}
	for i := range items {
		it, p := &items[i], &places[i]
		if p.entry == noEntry {
			continue
		}
		if it.dirty && it.stored.empty() || !it.dirty && !it.exists {
			m.shards[p.shard].forget(p.entry)
		}
	}
}
