package algorithms

import (
	"context"
	"fmt"
	"hash/maphash"
	"math/bits"
	"sync"
	"time"
)

// Memory limits within this process. It holds its keys in shards, at most
// MaxKeys in all; keys that are full again are forgotten.
//
// A Memory is safe for concurrent use, and must be closed.
type Memory struct {
	now     func() time.Time
	observe func(Event)
	seed    maphash.Seed
	shards  []shard // a power of two, at most 64

	close   sync.Once
	closing chan struct{}
	closed  chan struct{}
}

var _ Limiter = (*Memory)(nil)

// MemoryOptions tune a [Memory].
type MemoryOptions struct {
	// MaxKeys bounds the keys that are held; 0 means 1 000 000. Beyond it a
	// new key evicts one that has little to forget, but never one that was
	// denied within the last second, or random keys could free an exhausted
	// one. If there is nothing to evict, the new key is denied for a second.
	//
	// Keys are spread over shards with bounds of their own, so eviction may
	// begin some per cent early.
	MaxKeys int

	// Now is the clock; nil means time.Now.
	Now func() time.Time

	// Observe, if not nil, is told what happens. It is called while locks are
	// held: it must be quick, and not use the limiter.
	Observe func(Event)
}

const (
	defaultMaxKeys = 1_000_000
	maxShards      = 64
	minShardKeys   = 1024 // fewer keys than this per shard are not worth one

	sweepEvery = time.Second
	// refusedFor is the wait of a key that Memory has no room for.
	refusedFor = time.Second
)

// NewMemory returns a limiter that counts in this process; nil options mean
// the defaults. It starts one goroutine, which Close ends.
func NewMemory(o *MemoryOptions) (*Memory, error) {
	if o == nil {
		o = &MemoryOptions{}
	}
	if o.MaxKeys < 0 {
		return nil, fmt.Errorf("algorithms: MaxKeys is %d; it must not be negative", o.MaxKeys)
	}
	m := &Memory{
		now: o.Now, observe: o.Observe, seed: maphash.MakeSeed(),
		closing: make(chan struct{}), closed: make(chan struct{}),
	}
	if m.now == nil {
		m.now = time.Now
	}
	maxKeys := o.MaxKeys
	if maxKeys == 0 {
		maxKeys = defaultMaxKeys
	}
	n := 1
	for n < maxShards && maxKeys/(2*n) >= minShardKeys {
		n *= 2
	}
	m.shards = make([]shard, n)
	for i := range m.shards {
		m.shards[i].limit = maxKeys / n
		m.shards[i].index = make(map[string]int32)
	}
	go m.sweep()
	return m, nil
}

// Allow implements [Limiter]. It returns no errors but those that wrap
// [ErrInvalid], and the context's if that has ended already.
func (m *Memory) Allow(ctx context.Context, checks []Check) error {
	if err := ctx.Err(); err != nil || len(checks) == 0 {
		return err
	}
	now, err := clock(m.now())
	if err != nil {
		return err
	}
	room := workspaces.Get().(*workspace)
	defer room.release()
	items, err := newItems(room.items[:], checks, Local)
	if err != nil {
		return err
	}
	places, err := m.places(room.places[:0], room.keys[:0], items)
	if err != nil {
		return err
	}
	locked := m.lock(places)
	m.decide(items, places, now)
	m.unlock(locked)
	for i := range items {
		checks[i].Decision = items[i].decision(now, Local)
	}
	return nil
}

// A workspace is what a call of a few checks works on. It is pooled, since what
// steps are called with through their interface would be allocated otherwise.
type workspace struct {
	items  [4]item
	places [4]place
	keys   [256]byte
}

var workspaces = sync.Pool{New: func() any { return new(workspace) }}

// release forgets what belongs to the caller.
func (w *workspace) release() {
	clear(w.items[:])
	workspaces.Put(w)
}

// clock returns an instant in µs, and an error outside of the years in which
// all arithmetic is exact.
func clock(t time.Time) (int64, error) {
	now := t.UnixMicro()
	if now < 1 || now > maxExact-1<<46 {
		return 0, fmt.Errorf("algorithms: the clock says %v; it must be after 1970 and before 2253", t)
	}
	return now, nil
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
		keys = appendStored(keys, "", items[i].check)
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
// It requires that the shards of places are locked.
func (m *Memory) decide(items []item, places []place, now int64) {
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

// MemoryStats are counts since the start, but for Keys.
type MemoryStats struct {
	Keys    int    // that are held now
	Expired uint64 // that were forgotten because they were full again
	Evicted uint64 // that were forgotten to make room
	Refused uint64 // new keys that there was no room for
}

// Stats returns what has happened so far.
func (m *Memory) Stats() MemoryStats {
	var sum MemoryStats
	for i := range m.shards {
		sh := &m.shards[i]
		sh.mu.Lock()
		sum.Keys += len(sh.index)
		sum.Expired += sh.stats.Expired
		sum.Evicted += sh.stats.Evicted
		sum.Refused += sh.stats.Refused
		sh.mu.Unlock()
	}
	return sum
}

// Close ends the goroutine that forgets expired keys, and waits for it. The
// limiter goes on deciding. Close may be called more than once.
func (m *Memory) Close() error {
	m.close.Do(func() { close(m.closing) })
	<-m.closed
	return nil
}

// sweep forgets keys that are full again, so that they go without traffic.
func (m *Memory) sweep() {
	defer close(m.closed)
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	for {
		select {
		case <-m.closing:
			return
		case <-tick.C:
			now := m.now().UnixMicro()
			for i := range m.shards {
				m.shards[i].sweep(now)
			}
		}
	}
}
