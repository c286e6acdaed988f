package algorithms

import (
	"math/rand/v2"
	"sync"
)

// A shard holds a part of a Memory's keys.
type shard struct {
	limit int // keys

	mu      sync.Mutex // guards what follows
	records records
	cursor  link // of sweep
	stats   MemoryStats

	_ [64]byte // keeps the next shard's mu off this cache line
}

const (
	evictionSamples = 8
	protectDenied   = 1_000_000 // µs
)

// reserve returns a record for a new key, evicting another if the shard is
// full; nil if there is none to evict. Records of places are in use by the
// call and stay. It requires mu.
func (sh *shard) reserve(hash uint32, n name, now int64, places []place) *record {
	if sh.records.keys >= sh.limit {
		r := sh.victim(now, places)
		if r == nil {
			sh.stats.Refused++
			return nil
		}
		sh.records.remove(r)
		sh.stats.Evicted++
	}
	return sh.records.add(hash, n)
}

// victim returns, of a few sampled records, the one that is full soonest. None
// that was denied within the last second qualifies: a flood of random keys
// must not free an exhausted one. It requires mu, and that no record is free.
func (sh *shard) victim(now int64, places []place) (best *record) {
	for range evictionSamples {
		r := sh.records.at(link(1 + rand.IntN(sh.records.made)))
		// A denial far ahead is of a clock that has stepped back since.
		if age := now - r.deniedAt; -protectDenied < age && age < protectDenied || inUse(r, places) {
			continue
		}
		if best == nil || r.fullAt < best.fullAt {
			best = r
		}
	}
	return best
}

func inUse(r *record, places []place) bool {
	for i := range places {
		if places[i].record == r {
			return true
		}
	}
	return false
}

// sweep forgets what is full in a part of the shard; sixteen calls see all.
// The clock is read under the lock: it may step back, and what a call writes
// after that must not be judged by an instant before.
func (sh *shard) sweep(clock func() int64) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	now := clock()
	made := sh.records.made
	for range min(made, made/16+64) {
		if sh.cursor++; int(sh.cursor) > made {
			sh.cursor = 1
		}
		if r := sh.records.at(sh.cursor); r.size > 0 && r.fullAt <= now {
			sh.records.remove(r)
			sh.stats.Expired++
		}
	}
}
