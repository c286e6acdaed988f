// A part of a Memory's keys, and how it forgets keys.
//
// Sweeping. For every 64 new keys, a shard looks at the next sweepSize = 128 records: at k = 2 records per new key. One
// round over m records thus takes m/k new keys. Let each key expire after L new keys. The sweep finds it at the latest
// one round after that, so the shard holds a key for at most L + m/k new keys. It then holds at most m = L + m/k keys,
// which gives m = L·k/(k-1) = 2L. L of them have not expired, so at most half of the records are expired keys.
//
// Example: 1 000 new keys come per second, and each expires after 10 s, so L = 10 000. The shard never holds more than
// 20 000 records, and goes round them in 10 s.
//
// A call of a known key counts for an eighth of a new key, so keys also go while no new keys come. A quiet service
// makes few calls, so a call also makes the sweeps of each tenth of a second since the shard's last sweep, up to four and
// up to one round, and those of another shard. Example: at 200 calls per second, each of 64 shards receives three or more, and looks at 1 280
// records. So the Memory looks at a million records in 12 s.
//
// A key lingers for a second after it has expired: making its record again costs more than finding it, and a key under a fast limit expires
// between two calls.

package algorithms

import (
	"math/rand/v2"
	"sync"

	"github.com/penstock-go/penstock/algorithms/internal/step"
)

// A shard holds a part of a Memory's keys.
type shard struct {
	limit int // most keys

	mu      sync.Mutex // guards the fields below
	records records
	cursor  link  // where sweep stands
	wear    int   // since the last sweep: 8 for a new key, 1 for another call
	swept   int64 // µs: the instant of the last sweep

	expired, evicted, refused uint64

	scratch step.Limit // for the call that holds mu

	_ [64]byte // keeps the next shard's mu off this cache line
}

const (
	newKeyWear = 8
	sweepWear  = 64 * newKeyWear
	sweepSize  = 128       // records: two blocks
	sweepEvery = 100_000   // µs: the shard sweeps as often, if it receives calls
	mostSweeps = 4         // of one call
	linger     = 1_000_000 // µs
)

// tend sweeps a few records now and then. It requires mu. In a quiet Memory it also looks after another shard, which
// may receive no calls: its mu must not be waited for, because a caller may hold several.
func (sh *shard) tend(m *Memory, now int64) {
	sh.wear++
	switch {
	case sh.wear >= sweepWear:
		sh.wear, sh.swept = 0, now
		sh.sweep(linger, m.now, nil)
	case sh.isQuiet(now):
		sh.catchUp(m, now)
		if other := &m.shards[rand.IntN(len(m.shards))]; other.mu.TryLock() {
			other.catchUp(m, now)
			other.mu.Unlock()
		}
	}
}

// isQuiet reports whether the last sweep was long ago, or the clock has stepped back. It requires mu.
func (sh *shard) isQuiet(now int64) bool { return uint64(now-sh.swept) >= sweepEvery }

// catchUp makes the sweeps that calls have not made, up to one round. It requires mu.
func (sh *shard) catchUp(m *Memory, now int64) {
	round := uint64(sh.records.made+sweepSize-1) / sweepSize
	for range min(uint64(now-sh.swept)/sweepEvery, mostSweeps, round) {
		sh.sweep(linger, m.now, nil)
	}
	if sh.isQuiet(now) {
		sh.wear, sh.swept = 0, now
	}
}

// write stores a state. It forgets the key if the state is empty. It requires mu.
func (sh *shard) write(r *record, s step.State, fullAt int64) {
	if s.Empty() {
		sh.records.remove(r)
		return
	}
	r.put(s, fullAt)
}

func inUse(r *record, places []place) bool {
	for i := range places {
		if places[i].record == r {
			return true
		}
	}
	return false
}

// sweep looks at a few records, and forgets keys that have been full for while (µs). It reads the clock under the lock:
// the clock may step back before another call writes a key, and an older instant must not judge that key. It requires
// mu.
func (sh *shard) sweep(while int64, clock func() int64, places []place) {
	until, made := clock()-while, sh.records.made
	for range min(made, sweepSize) {
		if sh.cursor++; int(sh.cursor) > made {
			sh.cursor = 1
		}
		if r := sh.records.at(sh.cursor); r.fullAt <= until && !inUse(r, places) {
			sh.records.remove(r)
			sh.expired++
		}
	}
}
