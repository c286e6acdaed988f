// Which key leaves a full Memory.

package algorithms

import "math/rand/v2"

const evictionSamples = 8
const protectDenied = 1_000_000 // µs

// reserve returns a record for a new key. If the shard is full it evicts another key, but none of places, which the
// call uses. It returns nil if it can evict none. It requires mu.
func (sh *shard) reserve(m *Memory, hash uint32, n *name, now int64, places []place) *record {
	if sh.records.keys >= sh.limit && !sh.evict(m, now, places) {
		sh.refused++
		return nil
	}
	sh.wear += newKeyWear
	return sh.records.add(hash, n)
}

// evict makes room for one key, and reports whether it could. If no sampled key qualifies, it sweeps a few records
// only: a flood of refusals must not become a flood of long sweeps. It requires mu.
func (sh *shard) evict(m *Memory, now int64, places []place) bool {
	if r := sh.victim(now, places); r != nil {
		sh.records.remove(r)
		sh.evicted++
		return true
	}
	sh.sweep(0, m.now, places)
	return sh.records.keys < sh.limit
}

// victim samples a few records, and returns the record that is full soonest. A key that was denied within the last
// second does not qualify: a flood of random keys must not free an exhausted key. It requires mu, and that all records
// are in use.
func (sh *shard) victim(now int64, places []place) (best *record) {
	for range evictionSamples {
		r := sh.records.at(link(1 + rand.IntN(sh.records.made)))
		// The clock may have stepped back since a denial; then age is far below 0.
		if age := now - r.deniedAt; -protectDenied < age && age < protectDenied || inUse(r, places) {
			continue
		}
		if best == nil || r.fullAt < best.fullAt {
			best = r
		}
	}
	return best
}
