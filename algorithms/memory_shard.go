package algorithms

import (
	"math/rand/v2"
	"sync"
	"time"
)

// A shard holds a part of a Memory's keys: an index into records, which never
// move, so that eviction can sample them in O(1).
type shard struct {
	limit int // keys

	mu      sync.Mutex // guards what follows
	index   map[string]int32
	records []record
	free    []int32 // records without a key
	cursor  int     // of sweep
	stats   MemoryStats

	_ [64]byte // keeps the next shard's mu off this cache line
}

// A record is the state of one key; it is free if the key is empty.
type record struct {
	key      string
	state    state
	fullAt   int64 // µs: the limit is full again, there is nothing to remember
	deniedAt int64 // µs
}

const (
	noEntry = int32(-1)

	evictionSamples = 8
	protectDenied   = 1_000_000 // µs
)

// reserve returns the index of a record for a new key, evicting another if the
// shard is full; noEntry if there is none to evict. Records of places are in
// use by the call and stay. It requires mu.
func (sh *shard) reserve(key string, now int64, places []place) int32 {
	i := noEntry
	switch {
	case len(sh.free) > 0:
		i = sh.free[len(sh.free)-1]
		sh.free = sh.free[:len(sh.free)-1]
	case len(sh.records) < sh.limit:
		i = int32(len(sh.records))
		sh.records = append(sh.records, record{})
	default:
		if i = sh.victim(now, places); i == noEntry {
			return noEntry
		}
		delete(sh.index, sh.records[i].key)
		sh.stats.Evicted++
	}
	sh.records[i] = record{key: key}
	sh.index[key] = i
	return i
}

// victim returns, of a few sampled records, the one that is full soonest. None
// that was denied within the last second qualifies: a flood of random keys
// must not free an exhausted one. It requires mu, and that no record is free.
func (sh *shard) victim(now int64, places []place) int32 {
	best := noEntry
	for range evictionSamples {
		i := int32(rand.IntN(len(sh.records)))
		r := &sh.records[i]
		// A denial far ahead is of a clock that has stepped back since.
		if age := now - r.deniedAt; -protectDenied < age && age < protectDenied || sh.inUse(i, places) {
			continue
		}
		if best == noEntry || r.fullAt < sh.records[best].fullAt {
			best = i
		}
	}
	return best
}

func (sh *shard) inUse(i int32, places []place) bool {
	for j := range places {
		if places[j].entry == i && string(places[j].key) == sh.records[i].key {
			return true
		}
	}
	return false
}

// forget frees a record. It requires mu.
func (sh *shard) forget(i int32) {
	delete(sh.index, sh.records[i].key)
	sh.records[i] = record{}
	sh.free = append(sh.free, i)
}

// sweep forgets what is full in a part of the shard; sixteen calls see all.
// The clock is read under the lock: it may step back, and what a call writes
// after that must not be judged by an instant before.
func (sh *shard) sweep(clock func() time.Time) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	now := clock().UnixMicro()
	for range min(len(sh.records), len(sh.records)/16+64) {
		if sh.cursor++; sh.cursor >= len(sh.records) {
			sh.cursor = 0
		}
		if r := &sh.records[sh.cursor]; r.key != "" && r.fullAt <= now {
			sh.forget(int32(sh.cursor))
			sh.stats.Expired++
		}
	}
}
