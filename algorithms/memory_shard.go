// A part of a Memory's keys, and how keys are forgotten.
//
// Sweeping. A shard looks at sweepSize records, in turn, for every 64 new keys:
// at k = 2 per new key. With m records it goes round in m/k new keys, so a key
// that expires after L new keys is held for less than L + m/k. As m is at most
// that, it is at most L·k/(k-1): at most half of the records have expired. Calls
// of known keys count for an eighth, so that keys also go while no new ones come.
//
// A key lingers for a second after it has expired. Making its record again costs
// more than finding it, and a key under a fast limit expires between two calls.

package algorithms

import (
	"math/rand/v2"
	"sync"

	"github.com/penstock-go/penstock/algorithms/internal/step"
)

// A shard holds a part of a Memory's keys.
type shard struct {
	limit int // keys

	mu      sync.Mutex // guards the fields below
	records records
	cursor  link // of sweep
	wear    int  // since the last sweep: 8 for a new key, 1 for another call

	expired, evicted, refused uint64

	_ [64]byte // keeps the next shard's mu off this cache line
}

const (
	newKeyWear = 8
	sweepWear  = 64 * newKeyWear
	sweepSize  = 128       // records: two blocks
	linger     = 1_000_000 // µs

	evictionSamples = 8
	protectDenied   = 1_000_000 // µs
)

// tend sweeps a few records now and then. It requires mu.
func (sh *shard) tend(m *Memory) {
	if sh.wear++; sh.wear >= sweepWear {
		sh.wear = 0
		sh.sweep(linger, m.now, nil)
	}
}

// write stores a state, or forgets the key if the state says nothing. It
// requires mu.
func (sh *shard) write(r *record, s step.State, fullAt int64) {
	if s.Empty() {
		sh.records.remove(r)
		return
	}
	r.put(s, fullAt)
}

// reserve returns a record for a new key. If the shard is full it evicts another
// key; nil means that there is none to evict. Records of places are in use by the
// call and stay. It requires mu.
func (sh *shard) reserve(m *Memory, hash uint32, n name, now int64, places []place) *record {
	if sh.records.keys >= sh.limit && !sh.evict(m, now, places) {
		sh.refused++
		return nil
	}
	sh.wear += newKeyWear
	return sh.records.add(hash, n)
}

// evict makes room for one key, and reports whether it could. Before it gives up
// it sweeps a few records: a flood of refusals must not become a flood of long
// sweeps. It requires mu.
func (sh *shard) evict(m *Memory, now int64, places []place) bool {
	if r := sh.victim(now, places); r != nil {
		sh.records.remove(r)
		sh.evicted++
		return true
	}
	sh.sweep(0, m.now, places)
	return sh.records.keys < sh.limit
}

// victim returns, of a few sampled records, the one that is full soonest. A key
// that was denied within the last second does not qualify: a flood of random
// keys must not free an exhausted one. It requires mu, and that no record is
// free.
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

// sweep looks at a few records, and forgets keys that have been full again for a
// while (µs). The clock is read under the lock: it may step back, and a key that a call writes
// after that must not be judged by an instant before. It requires mu.
func (sh *shard) sweep(while int64, clock func() int64, places []place) {
	until, made := clock()-while, sh.records.made
	for range min(made, sweepSize) {
		if sh.cursor++; int(sh.cursor) > made {
			sh.cursor = 1
		}
		if r := sh.records.at(sh.cursor); r.size > 0 && r.fullAt <= until && !inUse(r, places) {
			sh.records.remove(r)
			sh.expired++
		}
	}
}
